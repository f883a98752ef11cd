"""Drivers of the primitives that run in the host process: http_client and filesystem."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.http_tools.response import explain_status
from toolcrib.infra.egress import Request, describe_binary, is_json, read_media_type, text_of
from toolcrib.infra.files.jail import encode_text, list_items, read_text
from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.lib.documents import read_json
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.lib.system_tools import OPERATIONS
from toolcrib.lib.templates import Text, as_json_part, as_text, as_url_part, compile_template, look_up_in
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.features.scripts.chain import Order
    from toolcrib.infra.egress import Response
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.lib.http_syntax import HostList, Url
    from toolcrib.lib.templates import Place, Template
    from toolcrib.model.call import Call, Context


MAX_BYTES = 5_000_000
REQUEST_KEYS = ("method", "url", "headers", "body")
CAPABILITY = "net."
SUCCESS = range(200, 400)
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
FORM_TYPE = "application/x-www-form-urlencoded"

# Scheme, host and port written out by the author, and closed by what follows them.
_AUTHORITY = re.compile(r"https?://[^/?#]+[/?#]", re.IGNORECASE)
_PATH_END = re.compile(r"[?#]")


class HttpDriver:
    """Sends one request per call; `max_bytes` bounds what may come back."""

    def __init__(self, egress: Egress, *, max_bytes: int = MAX_BYTES) -> None:
        self._egress = egress
        self._max_bytes = max_bytes

    def check(self, order: Order, call: Call) -> None:
        """Refuse what can be seen without sending: capability, slots, names, variables, URL, headers and host."""
        # A call that is only explained may have no id yet.
        values = {**order.values, "request_id": order.values.get("request_id") or "0"}
        self._prepare(replace(order, values=values), VariableMasking(order.variable))

    async def run(self, order: Order, context: Context) -> Outcome:
        """Send the request and read the answer; a status outside 200 to 399 is a failure."""
        masking = VariableMasking(order.variable)
        request, hosts = self._prepare(order, masking)
        try:
            response = await self._egress.fetch(
                request, hosts=hosts, max_bytes=self._max_bytes, timeout=max(0.0, context.deadline - time.monotonic())
            )
            if response.status not in SUCCESS:
                raise explain_status(request, response, masking.hide)
            value = self._read(request, response)
        except ToolError as error:
            raise masking.hide_error(error) from None
        return Outcome(value=value, meta={"status": response.status, "origin": masking.hide(response.url.origin)})

    def _prepare(self, order: Order, masking: VariableMasking) -> tuple[Request, HostList | None]:
        _check_network_capability(order)
        hosts = _hosts_of(order)
        try:
            request = _render(order, masking)
            self._egress.check(request.url, hosts)
        except ToolError as error:
            raise masking.hide_error(error) from None
        return request, hosts

    def _read(self, request: Request, response: Response) -> object:
        """JSON where the response says so, else its text, else a sentence about its size; None for no body."""
        if not response.body:
            return None
        if not is_json(read_media_type(response.headers.get("content-type", ""))):
            text = text_of(response)
            return describe_binary(response) if text is None else text
        try:
            return read_json(response.body, place=f"the answer of {response.url.origin}", max_bytes=self._max_bytes)
        except ToolError as problem:
            raise ToolError(
                Kind.OUTPUT_INVALID,
                problem.message,
                partial_side_effects=request.has_effects,
                details={"origin": response.url.origin, "status": response.status},
            ) from None


@dataclass(frozen=True, slots=True)
class _Pen:
    """Fills the templates of one request; raises ToolError that names the part of the request."""

    lookup: Callable[[str], object]
    variable: Callable[[str], str | None]

    def write(self, part: str, template: Template, place: Place = as_text) -> object:
        try:
            return template.render(self.lookup, self.variable, place)
        except ToolError as error:
            message = f"config.{part}: {error.message}"
            raise ToolError(error.kind, message, retryable=error.retryable, details=error.details) from None


def _check_network_capability(order: Order) -> None:
    if any(capability.startswith(CAPABILITY) for capability in order.tool.requires):
        return
    message = f"{order.tool.name} sends requests and requires no net capability; list net.http in its requires"
    raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": ["net.http"]})


def _hosts_of(order: Order) -> HostList | None:
    """The hosts of the first element of the chain that restricts them."""
    runs = (element.run for element in order.chain.elements)
    hosts = next((run.hosts for run in runs if isinstance(run, Chained) and run.hosts is not None), None)
    return None if hosts is None else parse_hosts(hosts)


def _render(order: Order, masking: VariableMasking) -> Request:
    """The request that the author configured; of the primitive itself, the one that the caller spells out."""
    if order.is_primitive:
        parts = dict(order.arguments)
        return _to_request(parts.get("method"), _parse(parts.get("url")), parts.get("headers"), parts.get("body"))
    config = order.chain.config
    _refuse_unknown(config)
    templates = {key: compile_template(value) for key, value in config.items()}
    pen = _Pen(look_up_in(_declared(order), order.arguments, order.values), masking.variable)
    written = {key: pen.write(key, templates[key]) for key in ("method", "headers") if key in templates}
    url = _render_url(templates["url"], pen) if "url" in templates else _parse(None)
    headers = _to_headers(written.get("headers"))
    # A document becomes JSON as a whole; only in a text the author's own quotes stand around a value.
    place = _place_in(headers) if isinstance(config.get("body"), str) else as_text
    body = pen.write("body", templates["body"], place) if "body" in templates else None
    secret = _with_variables(templates["headers"]) if "headers" in templates else frozenset()
    return _to_request(written.get("method"), url, headers, body, secret)


def _refuse_unknown(config: Mapping[str, object]) -> None:
    unknown = sorted(set(config) - set(REQUEST_KEYS))
    if unknown:
        message = f"config: {', '.join(unknown)} is unknown to http_client; write {', '.join(REQUEST_KEYS)} only"
        raise ToolError(Kind.VALIDATION, message)


def _declared(order: Order) -> Mapping[str, object]:
    properties = order.tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _render_url(template: Template, pen: _Pen) -> Url:
    """The URL; a value reaches only its path and query, unless the whole URL is one slot and then checked like any other."""
    text = template.document
    if not isinstance(text, Text) or text.sole is not None:
        return _parse(pen.write("url", template))
    if _AUTHORITY.match(text.head) is None:
        cure = 'write scheme, host and port out, or let the whole url be one slot such as "{url}"'
        raise ToolError(Kind.VALIDATION, f"config.url: scheme, host and port take no slots; {cure}")
    written = str(pen.write("url", template, as_url_part))
    _refuse_other_path(text, written)
    return _parse(written)


def _refuse_other_path(text: Text, written: str) -> None:
    """Refuse a value that changes the path of the URL, such as `..`."""
    from urllib.parse import unquote

    # With every slash of a value encoded, both have the same segments.
    sample = "".join(piece if isinstance(piece, str) else "-" for piece in text.pieces)
    for meant, segment in zip(_segments(sample), _segments(written), strict=False):
        if meant != segment and unquote(segment) in {"", ".", ".."}:
            message = 'config.url: a value leaves a segment of the path empty, "." or ".."; give another value'
            raise ToolError(Kind.VALIDATION, message)


def _segments(url: str) -> list[str]:
    return _PATH_END.split(url, maxsplit=1)[0].split("/")


def _parse(url: object) -> Url:
    if not isinstance(url, str):
        reason = "is missing" if url is None else "is not a text"
        raise ToolError(Kind.VALIDATION, f"the url {reason}; write an http or https URL in full")
    return parse_url(url)


def _place_in(headers: Mapping[str, str]) -> Place:
    """How values are written into a body that is text, by what its author says it is."""
    media_type = read_media_type(_content_type(headers) or "")
    if is_json(media_type):
        return as_json_part
    return as_url_part if media_type == FORM_TYPE else as_text


def _to_request(
    method: object, url: Url, headers: object, body: object, secret_headers: frozenset[str] = frozenset()
) -> Request:
    fields = _to_headers(headers)
    data = None if body is None else _encode(body if isinstance(body, str) else json.dumps(body, ensure_ascii=False))
    if data is not None and _content_type(fields) is None:
        fields["Content-Type"] = TEXT_TYPE if isinstance(body, str) else JSON_TYPE
    return Request(
        url=url,
        method=str(method or "GET").upper(),
        headers=fields,
        body=data,
        secret_headers=secret_headers,
    )


def _to_headers(headers: object) -> dict[str, str]:
    if headers is None:
        return {}
    if not isinstance(headers, dict):
        raise ToolError(Kind.VALIDATION, "headers: write a mapping of names to values")
    return {str(name): as_text(value) for name, value in headers.items()}


def _with_variables(headers: Template) -> frozenset[str]:
    """The headers that hold a variable of the host, which stays with the origin it was meant for."""
    if not isinstance(headers.document, dict):
        return frozenset()
    return frozenset(
        str(name) for name, value in headers.document.items() if isinstance(value, Text) and value.variables
    )


def _content_type(headers: Mapping[str, str]) -> str | None:
    return next((value for name, value in headers.items() if name.lower() == "content-type"), None)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"body: holds half of a surrogate pair (character {error.start}); write the whole character"
        raise ToolError(Kind.VALIDATION, message) from None


MAX_FILE_BYTES = 1_000_000
MAX_ITEMS = 5_000
READING = frozenset({"read", "list", "exists"})
WITH_CONTENT = frozenset({"write", "append"})
FILE_KEYS = ("operation", "path", "content")


@dataclass(frozen=True, slots=True)
class _Operation:
    """One file operation."""

    operation: str
    path: str
    data: bytes


class FilesystemDriver:
    """Does one operation per call; each needs its capability among what the called tool itself requires."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail
        self._acts: dict[str, Callable[[str, bytes], object]] = {
            "read": lambda path, _: read_text(jail, path, MAX_FILE_BYTES),
            "list": lambda path, _: list_items(jail, path, MAX_ITEMS),
            "exists": lambda path, _: jail.exists(path),
            "write": self._write,
            "append": self._append,
            "delete": self._delete,
            "make_folder": lambda path, _: {"path": path, "made": jail.make_folder(path)},
        }

    def check(self, order: Order, call: Call) -> None:
        """Refuse what can be seen without touching a file: slots, operation, capability, path and content."""
        _prepare(order, VariableMasking(order.variable))

    async def run(self, order: Order, context: Context) -> Outcome:
        """Run the operation and return its result."""
        masking = VariableMasking(order.variable)
        errand = _prepare(order, masking)
        try:
            return Outcome(value=self._acts[errand.operation](errand.path, errand.data))
        except ToolError as error:
            raise masking.hide_error(error) from None

    def _write(self, path: str, data: bytes) -> object:
        self._jail.write(path, data)
        return {"path": path, "bytes": len(data)}

    def _append(self, path: str, data: bytes) -> object:
        self._jail.append(path, data)
        return {"path": path, "bytes": len(data)}

    def _delete(self, path: str, _: bytes) -> object:
        self._jail.delete(path)
        return {"path": path, "deleted": True}


def _prepare(order: Order, masking: VariableMasking) -> _Operation:
    try:
        request = _request_of(order, masking)
        operation = request.get("operation")
        if operation not in OPERATIONS:
            raise _refusal("operation", f"write one of {', '.join(OPERATIONS)}")
        _check_file_capability(order, str(operation))
        path = request.get("path")
        if not isinstance(path, str):
            raise _refusal("path", "write a path of the workspace as text")
        return _Operation(str(operation), path, _data_of(str(operation), path, request.get("content")))
    except ToolError as error:
        raise masking.hide_error(error) from None


def _data_of(operation: str, path: str, content: object) -> bytes:
    if operation not in WITH_CONTENT:
        return b""
    if not isinstance(content, str):
        raise _refusal("content", f"write the text to {operation}")
    return encode_text(path, content, MAX_FILE_BYTES)


def _request_of(order: Order, masking: VariableMasking) -> Mapping[str, object]:
    """The arguments of the call, overridden by what the author configured."""
    if order.is_primitive:
        return order.arguments
    config = order.chain.config
    unknown = sorted(set(config) - set(FILE_KEYS))
    if unknown:
        message = f"config: {', '.join(unknown)} is unknown to filesystem; write {', '.join(FILE_KEYS)} only"
        raise ToolError(Kind.VALIDATION, message)
    properties = order.tool.parameters.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    lookup = look_up_in(declared, order.arguments, order.values)
    given = {key: order.arguments[key] for key in FILE_KEYS if key in order.arguments}
    for key, value in config.items():
        template = compile_template(value)
        try:
            given[key] = template.render(lookup, masking.variable)
        except ToolError as error:
            raise ToolError(error.kind, f"config.{key}: {error.message}", details=error.details) from None
        if key == "path":
            _refuse_climbing(template, str(given[key]))
    return given


def _refuse_climbing(template: Template, path: str) -> None:
    """Refuse `..` in a path that the author began; the jail checks one that is wholly the caller's."""
    text = template.document
    if isinstance(text, Text) and text.sole is None and ".." in path.replace("\\", "/").split("/"):
        message = 'config.path: a value leads up with ".." out of the folder that its author named; give another value'
        raise ToolError(Kind.VALIDATION, message)


def _check_file_capability(order: Order, operation: str) -> None:
    capability = "fs.read" if operation in READING else "fs.write"
    if capability in order.tool.requires:
        return
    message = f"{order.tool.name}: {operation} needs {capability}; list it in the tool's requires"
    raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [capability]})


def _refusal(key: str, cure: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"filesystem: {key} is missing or unknown; {cure}")
