"""What a model asks for, and the arguments it wrote, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import MAX_ARGUMENT_BYTES, check_plain, read_json

PLACE = "arguments"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One call as a reply has it: the vendor's id, the name that the model used, and the arguments as they came."""

    id: str
    name: str
    arguments: object = None


def read_arguments(written: object) -> dict[str, object]:
    """The arguments of a call, from text or from what the vendor's package made of it; nothing means none."""
    if written is None or (isinstance(written, str) and not written.strip()):
        # Models leave the text empty for a tool that takes nothing.
        return {}
    value = read_json(written, place=PLACE, max_bytes=MAX_ARGUMENT_BYTES) if isinstance(written, str) else written
    if not isinstance(value, Mapping):
        raise ToolError(Kind.VALIDATION, f'{PLACE}: must be a JSON object; write {{"name": value, …}}')
    arguments = dict(value)
    check_plain(arguments, place=PLACE)
    if not isinstance(written, str):
        _check_size(arguments)
    return arguments


def _check_size(arguments: dict[str, object]) -> None:
    size = len(orjson.dumps(arguments))
    if size > MAX_ARGUMENT_BYTES:
        message = f"{PLACE}: have {size} bytes, the limit is {MAX_ARGUMENT_BYTES}; make them smaller"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)
