__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "data"
__tool_description__ = "Fill a template"

config_schema = {
    "type": "object",
    "properties": {
        "template": {"type": "string"},
        "name": {"type": "string"},
        "city": {"type": "string", "default": "Oslo"},
    },
    "required": ["template", "name"],
    "additionalProperties": False,
}


async def execute(**params):
    values = {"city": "Oslo", **params}
    template = values.pop("template")
    return template.format(**values)
