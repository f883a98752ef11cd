from tool.bases import BaseTool, create_json_schema


class ProjectTool(BaseTool):
    """Base of our tools; the tools themselves are in another package."""

    def schema(self, **properties):
        return create_json_schema(properties, required=list(properties))


LIMIT = 10
