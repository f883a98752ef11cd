"""Write the result of a call for MCP: content for the model, structured content for programs, and typed errors."""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.interfaces.mcp.tool_definitions import HANDLE, RESULT
from toolcrib.lib.documents import write_json
from toolcrib.lib.hidden_text import show_hidden, show_hidden_in
from toolcrib.lib.presentation import to_text
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.interfaces.mcp.messages import Params
    from toolcrib.interfaces.mcp.tool_definitions import ServedTool
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.model.result import Result

META_KEY = "toolcrib/meta"
INTENTS_KEY = "toolcrib/intents"
ERROR_KEY = "toolcrib/error"
RESULT_URI = "crib://results/"
TEXT_TYPE = "text/plain"
MAX_BLOCKS = 100
# The fields of each block of content: those it must have, and those it may have beside `annotations` and `_meta`.
BLOCKS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "text": (("text",), ()),
    "image": (("data", "mimeType"), ()),
    "audio": (("data", "mimeType"), ()),
    "resource_link": (("uri", "name"), ("title", "description", "mimeType", "size", "icons")),
    "resource": (("resource",), ()),
}


def to_wire(result: Result, served: ServedTool | None, wire: Wire) -> Params:
    """The result of a call of a tool; one that no tool has by that name is an error of the protocol.

    Clients hand both text and structure to a model, so characters that a person cannot see are written out in both.
    """
    if result.error is not None:
        if result.error.kind is Kind.NOT_FOUND and served is None:
            data = {"type": str(result.error.kind), "details": dict(result.error.details)}
            raise ProtocolError(Code.INVALID_PARAMS, result.error.message, data=data)
        return _failure(result, result.error)
    meta: Params = {META_KEY: result.meta}
    if result.intents:
        meta[INTENTS_KEY] = [intent.to_json() for intent in result.intents]
    kept = result.meta.get("kept")
    if isinstance(kept, dict):
        return {**_kept(result.value, kept, served, wire), "_meta": meta}
    value = result.value
    if served is not None and served.returns_content:
        try:
            return {"content": read_blocks(value, wire), "_meta": meta}
        except ToolError as problem:
            return _failure(result, problem)
    shown: Params = {"content": _text(value)}
    if wire.has_structure:
        _add_structure(shown, value, served, wire)
    shown["_meta"] = meta
    return shown


def _text(value: object) -> list[Params]:
    if type(value) is str:
        return [{"type": "text", "text": show_hidden(value)}]
    text = show_hidden(to_text(value))
    return [{"type": "text", "text": text}] if text else []


def _add_structure(shown: Params, value: object, served: ServedTool | None, wire: Wire) -> None:
    """Add the value itself if a schema declares it, or if it is an object."""
    promised = served is not None and served.output_schema is not None
    value = show_hidden_in(value)
    if wire.has_any_structure:
        if promised or isinstance(value, dict | list):
            shown["structuredContent"] = value
    elif promised and served is not None and served.wraps:
        shown["structuredContent"] = {RESULT: value}
    elif isinstance(value, dict):
        shown["structuredContent"] = value


def _failure(result: Result, error: ToolError) -> Params:
    """A failed call, in words for the model and as our typed error for programs."""
    typed = error.to_json()
    if result.value is not None:
        typed["details"] = {**error.details, "partialValue": result.value}
    # Clients pass results on to the model, some of them with this part.
    meta: Params = {META_KEY: result.meta, ERROR_KEY: show_hidden_in(typed)}
    return {"content": [{"type": "text", "text": _words(error)}], "isError": True, "_meta": meta}


def _words(error: ToolError) -> str:
    again = "; trying again may help" if error.retryable else ""
    if error.retryable and error.retry_after:
        when = f"try again in {math.ceil(error.retry_after)} s"
        again = "" if when in error.message else f"; {when}"
    effects = "; something may have been changed" if error.partial_side_effects else ""
    return show_hidden(f"{error.kind}: {error.message}{again}{effects}")


def _kept(head: object, kept: Mapping[str, object], served: ServedTool | None, wire: Wire) -> Params:
    """A value that is too large: its head, and where the rest can be read."""
    uri = f"{RESULT_URI}{kept['handle']}"
    text = f"The call was made. Its result has {kept['bytes']} bytes: these are the first {kept['shown']} letters, read the rest at {uri}"
    content: list[Params] = [{"type": "text", "text": show_hidden(f"{text}\n\n{to_text(head)}")}]
    if wire.has_links:
        content.append({"type": "resource_link", "uri": uri, "name": "result", "mimeType": TEXT_TYPE})
    if served is not None and not served.may_be_kept(wire):
        # A strict client refuses any other result whose structure does not fit the schema of the tool.
        return {"content": content, "isError": True}
    shown: Params = {"content": content}
    if wire.has_structure:
        shown["structuredContent"] = {HANDLE: {"uri": uri, "bytes": kept["bytes"]}}
    return shown


def read_blocks(value: object, wire: Wire) -> list[Params]:
    """The blocks of content that a tool or a prompt returned; raises ToolError for anything else."""
    given = value if isinstance(value, list) else [value]
    if len(given) > MAX_BLOCKS:
        raise _broken(f"it has more than {MAX_BLOCKS} blocks")
    return [_older(read_block(block), wire) for block in given]


def read_block(block: object) -> Params:
    """One block of content, with the fields that it may have; hidden characters are written out."""
    block = show_hidden_in(block)
    if isinstance(block, str):
        return {"type": "text", "text": block}
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str) or kind not in BLOCKS:
        raise _broken(f"a block is a text, or an object whose type is one of {', '.join(BLOCKS)}")
    required, optional = BLOCKS[kind]
    if missing := [key for key in required if key not in block]:
        raise _broken(f"a block of type {kind} needs {', '.join(missing)}")
    allowed = {"type", *required, *optional, "annotations", "_meta"}
    if unknown := sorted(block.keys() - allowed):
        raise _broken(f"a block of type {kind} has no {unknown[0]!r:.40}")
    if kind == "resource":
        return {**block, "resource": _read_embedded(block["resource"])}
    for key in required:
        if not isinstance(block[key], str):
            raise _broken(f"{key} of a block is a text")
    if "data" in block:
        check_base64(block["data"])
    return block


def _read_embedded(resource: object) -> Params:
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        raise _broken("an embedded resource is an object with a uri")
    text, blob = resource.get("text"), resource.get("blob")
    if isinstance(text, str) == isinstance(blob, str):
        raise _broken("an embedded resource has either a text or a blob")
    if blob is not None:
        check_base64(blob)
    return {key: part for key, part in resource.items() if key in {"uri", "mimeType", "text", "blob", "_meta"}}


def check_base64(data: object) -> None:
    """Refuse what is not base64."""
    try:
        base64.b64decode(data, validate=True)  # type: ignore[arg-type]  # what is not text is refused below
    except (binascii.Error, ValueError, TypeError):
        raise _broken("data of a block is not base64") from None


def _older(block: Params, wire: Wire) -> Params:
    """The block, or for a version that does not know it, what it says in words."""
    kind = block["type"]
    if kind == "resource_link" and not wire.has_links:
        return {"type": "text", "text": f"{block['name']}: {block['uri']}"}
    if kind == "audio" and not wire.has_audio:
        return {
            "type": "text",
            "text": f"(audio of type {block['mimeType']}, which this version of the protocol cannot carry)",
        }
    return block


def structured(value: object) -> Params:
    """The result of a tool of this interface itself: an object, and the same as text, with hidden characters written out."""
    shown = show_hidden_in(value)
    return {"content": [{"type": "text", "text": write_json(shown).decode()}], "structuredContent": shown}


def _broken(why: str) -> ToolError:
    return ToolError(Kind.OUTPUT_INVALID, f"the tool returned content that a client cannot show: {why}")
