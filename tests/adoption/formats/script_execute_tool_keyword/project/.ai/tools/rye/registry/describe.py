__version__ = "0.1.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "rye/registry"
__tool_description__ = "Write a line for the tool registry"

__parameters__ = [
    {"name": "tool", "type": "string", "required": True, "description": "Name of the tool"},
    {"name": "params", "type": "object", "required": False, "default": {}, "description": "Its parameters"},
]


def execute(tool, params=None):
    names = ", ".join(sorted(params or {}))
    return f"{tool}({names})"
