"""Tools of existing agent code: `BaseTool`, `ToolRegistry`, and the import paths of the original."""
