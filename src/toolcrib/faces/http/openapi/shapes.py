"""What schemas are made of."""

from __future__ import annotations

TEXT: dict[str, object] = {"type": "string"}
SWITCH: dict[str, object] = {"type": "boolean"}
ANYTHING: dict[str, object] = {"type": "object", "additionalProperties": True}
WHOLE: dict[str, object] = {"type": "integer", "minimum": 0}
OPTIONAL_TIME: dict[str, object] = {"type": ["string", "null"], "format": "date-time"}
OPTIONAL_TEXT: dict[str, object] = {"type": ["string", "null"]}
OPTIONAL_WHOLE: dict[str, object] = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1}


def closed(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """An object that has no other keys than these."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def open_to_more(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """An object that may have further keys."""
    return {**closed(required, **properties), "additionalProperties": True}
