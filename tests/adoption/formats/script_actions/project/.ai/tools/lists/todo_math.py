"""
Several actions in one file: {"action": "sum", "values": [...]}.
"""
__version__ = "2.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/function"
__category__ = "lists"
__tool_description__ = "Sum up or sort values"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["sum", "sort"]},
        "values": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["action", "values"],
}


def execute(params, project_path=None):
    action = ACTIONS.get(params.get("action"))
    if not action:
        return {"error": f"Unknown action: {params.get('action')}"}
    return action(params["values"])


def _sum(values):
    return {"result": sum(values)}


def _sort(values):
    return {"result": sorted(values)}


ACTIONS = {"sum": _sum, "sort": _sort}
