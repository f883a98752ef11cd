"""One result, as each of the documents wants to see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from toolcrib.model.result import Result


def to_platform(result: Result) -> dict[str, object]:
    """`{ok, value}` or `{ok, error}`, never both: a partial value moves into the error's details."""
    beside: dict[str, object] = {"intents": [intent.to_json() for intent in result.intents], "meta": result.meta}
    if result.error is None:
        return {"ok": True, "value": result.value, **beside}
    error = result.error.to_json()
    if result.value is not None:
        error["details"] = {**result.error.details, "partialValue": result.value}
    return {"ok": False, "error": error, **beside}


def to_handler(result: Result) -> dict[str, object]:
    """`{ok, data, intents}` or `{ok, error}`, as voice and text agents read it."""
    if result.error is None:
        return {
            "ok": True,
            "data": result.value,
            "intents": [intent.to_json() for intent in result.intents],
            "meta": result.meta,
        }
    return {"ok": False, "error": result.error.to_json(), "meta": result.meta}


def to_builder(result: Result) -> dict[str, object]:
    """`{result, success, error}`, as built packages return it; a partial result stays beside the error."""
    return {
        "result": result.value,
        "success": result.ok,
        "error": None if result.error is None else result.error.message,
    }


def to_text(value: object) -> str:
    """A value as the text that a model reads: itself, or JSON; nothing for null. What is not JSON is told in words."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return str(value)
