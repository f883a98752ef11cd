from tool.bases import BaseTool

__all__ = ["BaseTool"]
