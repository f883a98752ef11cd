"""What stands beside the type in `Annotated`: a description in words, or the bounds of a value."""

from __future__ import annotations

BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
LENGTHS = {
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
TEXT_LENGTHS = {"min_length": "minLength", "max_length": "maxLength"}


def apply_note(schema: dict[str, object], note: object) -> None:
    """Write a note into the schema.

    Text is the description; anything else is asked for the attributes that pydantic's Field and annotated_types have.
    """
    if isinstance(note, str):
        schema["description"] = note
        return
    for attribute in ("description", "documentation"):
        text = getattr(note, attribute, None)
        if isinstance(text, str):
            schema["description"] = text
    lengths = LENGTHS.get(str(schema.get("type")), TEXT_LENGTHS)
    for attribute, keyword in {**BOUNDS, **lengths}.items():
        bound = getattr(note, attribute, None)
        if isinstance(bound, int | float | str):
            schema[keyword] = bound
    parts = getattr(note, "metadata", None)
    if isinstance(parts, list | tuple):
        for part in parts:
            apply_note(schema, part)
