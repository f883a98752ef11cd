"""HTTP client primitive of this project."""

__version__ = "1.0.0"
__tool_type__ = "primitive"
__executor_id__ = None
__category__ = "rye/core/primitives"
__tool_description__ = "Make HTTP requests"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {"method": {"type": "string"}, "url": {"type": "string"}},
    "required": ["url"],
}
