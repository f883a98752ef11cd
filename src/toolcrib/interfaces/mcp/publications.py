"""Serve resources and prompts: those that are published, documents of tools, large results, and prompts of modes."""

from __future__ import annotations

import base64
import inspect
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from toolcrib.core.sources import call_mode
from toolcrib.features.publications.definitions import PromptArgument, PublishedPrompt, PublishedResource
from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.interfaces.mcp.tool_results import RESULT_URI, TEXT_TYPE, read_block
from toolcrib.interfaces.mcp.versions import FRESH_MS
from toolcrib.lib.hidden_text import show_hidden
from toolcrib.lib.names import function_name
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.client_link import ClientContext, Peer
    from toolcrib.interfaces.mcp.messages import Params

DOCUMENT_URI = "crib://tools/{tool}/document"
MARKDOWN = "text/markdown"
PAGE = 500
MAX_COMPLETIONS = 100
RESULT_LETTERS = 100_000
_RESULT = re.compile(re.escape(RESULT_URI) + r"([0-9a-f]{1,64})(?:\?offset=([0-9]{1,12}))?")


class ServedPublications:
    """The resources and prompts of a crib as the protocol has them."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib

    # --- resources -----------------------------------------------------------------------------------------------------

    def list_resources(self, cursor: int) -> tuple[list[Params], int | None]:
        """A page of the resources, and where the next begins."""
        published = [_describe(found) for found in self._crib.publications.resources() if not found.slots]
        documents = [self._document(name) for name in self._documented()]
        return _page([*published, *documents], cursor)

    def list_templates(self, cursor: int) -> tuple[list[Params], int | None]:
        """A page of the templates of resources, and where the next begins."""
        published = [_describe(found) for found in self._crib.publications.resources() if found.slots]
        ours: list[Params] = [
            {
                "uriTemplate": DOCUMENT_URI,
                "name": "tool-document",
                "description": "All there is to read about a tool.",
                "mimeType": MARKDOWN,
            },
            {
                "uriTemplate": f"{RESULT_URI}{{handle}}{{?offset}}",
                "name": "large-result",
                "description": "A piece of a result that was too large to be given at once, from a letter on.",
                "mimeType": TEXT_TYPE,
            },
        ]
        return _page([*published, *ours], cursor)

    async def read(self, uri: str, peer: Peer, context: ClientContext) -> Params:
        """The contents of a resource; raises for one that does not exist."""
        contents = await self._read(uri, peer, context)
        return {"contents": contents, "ttlMs": FRESH_MS, "cacheScope": "private"}

    async def _read(self, uri: str, peer: Peer, context: ClientContext) -> list[Params]:
        if found := _RESULT.fullmatch(uri):
            return [self._read_result(uri, found[1], int(found[2] or 0), peer)]
        published = self._crib.publications.find_resource(uri)
        if published is not None:
            resource, words = published
            return _contents(await _call(resource.read, context, words), uri, resource.mime_type)
        entry = self._crib.find(name) if (name := _document_of(uri)) else None
        # The texts of a tool that is disabled, or lacks a grant, are not published.
        is_offered = entry is not None and entry.enabled and not self._crib.grants.missing(entry.tool)
        text = entry.tool.documentation if entry is not None and is_offered else ""
        if not text:
            raise ProtocolError(
                peer.wire.resource_not_found, f"there is no resource {uri[:200]!r}", data={"uri": uri[:2_000]}
            )
        return [{"uri": uri, "mimeType": MARKDOWN, "text": show_hidden(text)}]

    def _read_result(self, uri: str, handle: str, offset: int, peer: Peer) -> Params:
        try:
            piece = self._crib.read_result(handle, caller=peer.caller, offset=offset, length=RESULT_LETTERS)
        except ToolError as problem:
            raise ProtocolError(peer.wire.resource_not_found, problem.message, data={"uri": uri}) from problem
        shown: Params = {"uri": uri, "mimeType": TEXT_TYPE, "text": show_hidden(piece.text)}
        if piece.next is not None:
            shown["_meta"] = {
                "toolcrib/next": f"{RESULT_URI}{handle}?offset={piece.next}",
                "toolcrib/letters": piece.total,
            }
        return shown

    def _documented(self) -> list[str]:
        return sorted({tool.name for tool in self._crib.offered() if tool.documentation})

    def _document(self, name: str) -> Params:
        shown = function_name(name)
        return {
            "uri": DOCUMENT_URI.replace("{tool}", shown),
            "name": f"{shown}-document",
            "title": f"The document of {shown}",
            "description": f"All there is to read about the tool {shown}.",
            "mimeType": MARKDOWN,
        }

    # --- prompts -------------------------------------------------------------------------------------------------------

    def list_prompts(self, cursor: int) -> tuple[list[Params], int | None]:
        """A page of the prompts, and where the next begins."""
        return _page([_describe_prompt(prompt) for prompt in self._prompts()], cursor)

    async def get_prompt(self, name: str, arguments: Params, context: ClientContext) -> Params:
        """The messages of a prompt; raises for one that does not exist, and for arguments that it does not take."""
        prompt = self._find_prompt(name)
        words = _check_arguments(prompt, arguments)
        messages = _messages(await _call(prompt.render, context, words))
        described = {"description": show_hidden(prompt.description)} if prompt.description else {}
        return {**described, "messages": messages}

    def _prompts(self) -> list[PublishedPrompt]:
        published = self._crib.publications.prompts()
        names = {prompt.name for prompt in published}
        # A caller whose calls are all made in one mode has no use for another.
        only = call_mode(None)
        modes = sorted(MODES) if only is None else [only]
        return sorted(
            [*published, *(prompt for prompt in map(self._mode_prompt, modes) if prompt.name not in names)],
            key=lambda prompt: prompt.name,
        )

    def _find_prompt(self, name: str) -> PublishedPrompt:
        found = next((prompt for prompt in self._prompts() if prompt.name == name), None)
        if found is None:
            raise ProtocolError(Code.INVALID_PARAMS, f"there is no prompt {name[:200]!r}", data={"name": name[:200]})
        return found

    def _mode_prompt(self, mode: str) -> PublishedPrompt:
        return PublishedPrompt(
            name=f"tools-{mode}",
            render=lambda _: self._crib.prompt(mode).text or "There are no tools.",
            description=f"What a system prompt says of the tools of the mode {mode}.",
        )

    # --- completion ----------------------------------------------------------------------------------------------------

    def complete(self, reference: Params, argument: str, beginning: str) -> Params:
        """The words that an argument may be, of those that begin so."""
        words = [word for word in self._choices(reference, argument) if word.lower().startswith(beginning.lower())]
        shown = words[:MAX_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(words), "hasMore": len(words) > len(shown)}}

    def _choices(self, reference: Params, argument: str) -> Sequence[str]:
        kind, name, uri = (reference.get(key) for key in ("type", "name", "uri"))
        if kind == "ref/prompt" and isinstance(name, str):
            arguments = {each.name: each.choices for each in self._find_prompt(name).arguments}
            return arguments.get(argument, ())
        if kind == "ref/resource" and isinstance(uri, str):
            if uri == DOCUMENT_URI and argument == "tool":
                return [function_name(name) for name in self._documented()]
            published = (found.choices for found in self._crib.publications.resources() if found.uri == uri)
            return next(published, {}).get(argument, ())
        raise ProtocolError(Code.INVALID_PARAMS, "ref: must be a ref/prompt with a name, or a ref/resource with a uri")


async def _call(function: Any, context: ClientContext, words: dict[str, str]) -> object:
    """Call the code of a project, and report its errors without their details."""
    try:
        found = function(context, **words)
        return await found if inspect.isawaitable(found) else found
    except ToolError as problem:
        if problem.kind is Kind.CAPABILITY_MISSING:
            raise
        raise ProtocolError(Code.INTERNAL, problem.message, data={"type": str(problem.kind)}) from problem


def _contents(value: object, uri: str, mime_type: str) -> list[Params]:
    return [_content(part, uri, mime_type) for part in (value if isinstance(value, list) else [value])]


def _content(part: object, uri: str, mime_type: str) -> Params:
    if isinstance(part, bytes | bytearray):
        return {
            "uri": uri,
            "mimeType": mime_type or "application/octet-stream",
            "blob": base64.b64encode(part).decode(),
        }
    if isinstance(part, str):
        # A model reads it; what has to arrive byte for byte is given as bytes.
        return {"uri": uri, "mimeType": mime_type or TEXT_TYPE, "text": show_hidden(part)}
    raise ProtocolError(Code.INTERNAL, f"the resource {uri[:200]!r} gives neither text nor bytes")


def _describe(resource: PublishedResource) -> Params:
    shown: Params = {"uriTemplate" if resource.slots else "uri": resource.uri, "name": resource.name}
    beside = {"title": resource.title, "description": resource.description, "mimeType": resource.mime_type}
    return shown | {key: show_hidden(text) for key, text in beside.items() if text}


def _describe_prompt(prompt: PublishedPrompt) -> Params:
    beside = {"title": prompt.title, "description": prompt.description}
    shown: Params = {"name": prompt.name, **{key: show_hidden(text) for key, text in beside.items() if text}}
    if prompt.arguments:
        shown["arguments"] = [_describe_argument(argument) for argument in prompt.arguments]
    return shown


def _describe_argument(argument: PromptArgument) -> Params:
    shown: Params = {"name": argument.name, "required": argument.required}
    return shown | ({"description": show_hidden(argument.description)} if argument.description else {})


def _check_arguments(prompt: PublishedPrompt, arguments: Params) -> dict[str, str]:
    known = {argument.name for argument in prompt.arguments}
    missing = [each.name for each in prompt.arguments if each.required and each.name not in arguments]
    if missing:
        raise ProtocolError(Code.INVALID_PARAMS, f"prompt {prompt.name}: {', '.join(missing)} is missing")
    words: dict[str, str] = {}
    for name, word in arguments.items():
        if name not in known:
            raise ProtocolError(Code.INVALID_PARAMS, f"prompt {prompt.name} takes no argument {name[:80]!r}")
        if not isinstance(word, str):
            raise ProtocolError(Code.INVALID_PARAMS, f"prompt {prompt.name}: {name} must be a text")
        words[name] = word
    return words


def _messages(value: object) -> list[Params]:
    given: Iterable[object] = value if isinstance(value, list) else [value]
    try:
        return [_message(message) for message in given]
    except ToolError as problem:
        raise ProtocolError(Code.INTERNAL, problem.message) from problem


def _message(message: object) -> Params:
    if isinstance(message, dict) and "role" in message:
        role = message["role"]
        if role not in {"user", "assistant"}:
            raise ToolError(Kind.OUTPUT_INVALID, "the role of a message is user or assistant")
        return {"role": role, "content": read_block(message.get("content"))}
    return {"role": "user", "content": read_block(message)}


def _document_of(uri: str) -> str:
    """The tool whose document the URI means; empty if it means none."""
    before, after = DOCUMENT_URI.split("{tool}")
    if not uri.startswith(before) or not uri.endswith(after):
        return ""
    name = unquote(uri[len(before) : len(uri) - len(after)])
    return "" if "/" in name else name


def _page(items: list[Params], cursor: int) -> tuple[list[Params], int | None]:
    end = cursor + PAGE
    return items[cursor:end], end if end < len(items) else None
