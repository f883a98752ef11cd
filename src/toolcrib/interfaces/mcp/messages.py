"""Read and write the JSON-RPC messages of the Model Context Protocol, strictly and within bounds."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from toolcrib.lib.documents import MAX_KEYS, has_too_many_keys, read_json, read_plain, write_json
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Id = str | int
    Params = dict[str, object]

VERSION = "2.0"
MAX_ID_LETTERS = 256
MAX_METHOD_LETTERS = 256
MAX_ID = 2**63
# When a client that was refused for overload may try again.
RETRY_AFTER_SECONDS = 1


class Code(IntEnum):
    """The codes of errors: those of JSON-RPC, and those that the protocol adds."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    RESOURCE_NOT_FOUND = -32002
    HEADER_MISMATCH = -32020
    MISSING_CAPABILITY = -32021
    UNSUPPORTED_VERSION = -32022


class ProtocolError(Exception):
    """The error response to a request that cannot be carried out; a tool that fails gives a result instead.

    `status` is what HTTP answers where that is not told by the code, and `retry_after` in how many seconds to try again.
    """

    def __init__(
        self, code: Code, message: str, *, data: object = None, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.retry_after = retry_after


def failed(error: ToolError, *, status: int = 0) -> ProtocolError:
    """The error of a request that failed for one of our reasons: which, and when to try again, stands in its data."""
    data: Params = {"type": str(error.kind)}
    if error.retry_after is not None:
        data |= {"retryable": error.retryable, "details": {RETRY_AFTER: error.retry_after}}
    return ProtocolError(Code.INTERNAL, error.message, data=data, status=status, retry_after=error.retry_after)


def overloaded(message: str, *, status: int = 0) -> ProtocolError:
    """The error of a request that is refused for overload."""
    error = ToolError(Kind.OVERLOADED, message, retryable=True, details={RETRY_AFTER: RETRY_AFTER_SECONDS})
    return failed(error, status=status)


class UnreadableError(ProtocolError):
    """The error for an invalid message; `id` is its id, if that could be read.

    `is_response` tells that it was meant as an answer: where messages go both ways, an answer is never answered.
    """

    def __init__(self, code: Code, message: str, request_id: Id | None = None, *, is_response: bool = False) -> None:
        super().__init__(code, message)
        self.id = request_id
        self.is_response = is_response


class Request:
    """A message that is answered; `tool` is what was found of the tool that it calls, once that was looked up."""

    __slots__ = ("id", "method", "params", "tool")

    def __init__(self, request_id: Id, method: str, params: Params) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.tool: object = ...

    @property
    def meta(self) -> Params:
        """What the client says about the request itself."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Notification:
    """A message that is not answered."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: Params) -> None:
        self.method = method
        self.params = params


class Response:
    """The answer of the client to a request of the server; `error` is its message where it has one."""

    __slots__ = ("error", "id", "result")

    def __init__(self, request_id: Id, result: Params | None, error: str | None) -> None:
        self.id = request_id
        self.result = result
        self.error = error


Message = Request | Notification | Response


def read_message(raw: bytes, max_bytes: int) -> Message:
    """The message; raises UnreadableError if it is invalid, or if two parsers could read it differently."""
    found = read_plain(raw) if len(raw) <= max_bytes else None
    if found is None:
        found = _read_strictly(raw, max_bytes)
    request_id = _read_id(found)
    if has_too_many_keys(raw, found):
        message = f"the objects of a message have more than {MAX_KEYS} keys; send fewer, or a list"
        raise UnreadableError(Code.INVALID_REQUEST, message, request_id)
    if found.get("jsonrpc") != VERSION:
        raise UnreadableError(Code.INVALID_REQUEST, 'a message says "jsonrpc": "2.0"', request_id)
    if "method" in found:
        return _read_call(found, request_id)
    if request_id is None or ("result" in found) == ("error" in found):
        raise UnreadableError(
            Code.INVALID_REQUEST, "a message has a method, or an id and a result or an error", request_id
        )
    return _read_response(found, request_id)


def _read_strictly(raw: bytes, max_bytes: int) -> Params:
    try:
        found = read_json(raw, place="message", max_bytes=max_bytes)
    except ToolError as problem:
        raise UnreadableError(Code.PARSE, problem.message) from None
    if isinstance(found, list):
        message = "send one message at a time; batches are not part of the protocol"
        raise UnreadableError(Code.INVALID_REQUEST, message)
    if not isinstance(found, dict):
        raise UnreadableError(Code.INVALID_REQUEST, "a message is a JSON object")
    return found


def _read_id(found: Params) -> Id | None:
    """The id of a message; None where there is none."""
    if "id" not in found:
        return None
    request_id = found["id"]
    if isinstance(request_id, str) and len(request_id) <= MAX_ID_LETTERS:
        return request_id
    if type(request_id) is int and -MAX_ID <= request_id < MAX_ID:
        return request_id
    message = f"an id is a text of at most {MAX_ID_LETTERS} letters, or a whole number of 64 bits"
    is_response = "method" not in found and ("result" in found or "error" in found)
    raise UnreadableError(Code.INVALID_REQUEST, message, is_response=is_response)


def _read_call(found: Params, request_id: Id | None) -> Request | Notification:
    method, params = found["method"], found.get("params", {})
    if not isinstance(method, str) or not 0 < len(method) <= MAX_METHOD_LETTERS:
        message = f"a method is a text of at most {MAX_METHOD_LETTERS} letters"
        raise UnreadableError(Code.INVALID_REQUEST, message, request_id)
    if "result" in found or "error" in found:
        raise UnreadableError(Code.INVALID_REQUEST, "a request has neither a result nor an error", request_id)
    if not isinstance(params, dict):
        raise UnreadableError(Code.INVALID_PARAMS, "params: must be an object", request_id)
    if not isinstance(params.get("_meta", {}), dict):
        raise UnreadableError(Code.INVALID_PARAMS, "params._meta: must be an object", request_id)
    return Notification(method, params) if request_id is None else Request(request_id, method, params)


def _read_response(found: Params, request_id: Id) -> Response:
    if "error" in found:
        error = found["error"]
        message = error.get("message") if isinstance(error, dict) else None
        return Response(request_id, None, message if isinstance(message, str) else "an error without a message")
    result = found["result"]
    if not isinstance(result, dict):
        raise UnreadableError(Code.INVALID_REQUEST, "result: must be an object", request_id, is_response=True)
    return Response(request_id, result, None)


def write_result(request_id: Id, result: object) -> bytes:
    """The answer to a request."""
    return write_json({"jsonrpc": VERSION, "id": request_id, "result": result})


def write_error(request_id: Id | None, error: ProtocolError) -> bytes:
    """The answer to a request that could not be carried out, or to an invalid message."""
    shown: Params = {"code": int(error.code), "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    return write_json({"jsonrpc": VERSION, "id": request_id, "error": shown})


def write_notification(method: str, params: Mapping[str, object] | None = None) -> bytes:
    """A message that the client does not answer."""
    message: Params = {"jsonrpc": VERSION, "method": method}
    return write_json(message if params is None else {**message, "params": params})


def write_request(request_id: Id, method: str, params: Mapping[str, object]) -> bytes:
    """A question to the client."""
    return write_json({"jsonrpc": VERSION, "id": request_id, "method": method, "params": params})
