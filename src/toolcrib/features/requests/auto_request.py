"""Obtain tools that may not exist yet, and file requests for missing tools that were called or searched for."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.requests.document import name_problem, read_request
from toolcrib.features.requests.document.parameters import MAX_ITEMS, is_argument_name
from toolcrib.features.requests.document.writer import set_field, write_request
from toolcrib.features.requests.tracker import MAX_TEXT_BYTES
from toolcrib.infra.files import read_small
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.toolrequest import Priority, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.features.requests.tracker import Requests
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.model.toolrequest import Filed, Submitted

    Requested = str | Path | Mapping[str, object]
    Fields = dict[str, object]


# An announced tool is in the project already, but the catalog may see it only a moment later.
SEEN_SECONDS = 5.0
POLL_SECONDS = 0.05


logger = logging.getLogger("toolcrib.requests")
MAX_OPEN = 100
# How long a call that found no tool waits for the number of its request; it is filed in any case.
PATIENCE_SECONDS = 0.5
# The number of automatic requests in progress; more are dropped.
MAX_IN_PROGRESS = 8
MAX_REMEMBERED = 1_000
# No automatic request is filed for so long after the queue was full of them, or could not be reached.
BACK_OFF_SECONDS = 10.0
MAX_WORDS = 8
MAX_TEXT = 200
MARK = "Filed automatically:"
OF_CALL = f"{MARK} a tool of this name was called and does not exist."
OF_SEARCH = f"{MARK} a search for these words found no tool."
REQUESTED_BY = "fullsend"
INPUT = "An argument of the call that found no tool."
_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "list",
    tuple: "list",
    dict: "object",
}
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_GAPS = re.compile(r"[\s_-]+")
_QUESTION = re.compile(r"[A-Za-z0-9\s_-]+[?!.]?")
_LONG_NUMBER = re.compile(r"[0-9](?:[\s_-]?[0-9]){4}")


class Awaited(Protocol):
    """Requests that can be waited for, of this machine or of a server."""

    def new(self, request: str | bytes, /) -> Submitted:
        """File a request."""

    def find_open(self, name: str) -> Filed | None:
        """The request for a tool of that name which is pending or being built."""

    def join(self, filed: Filed, experiment: str) -> Filed:
        """Have an experiment wait for an open request."""

    async def until_over(self, request_id: str) -> Filed:
        """Wait until a request is over."""


class Obtainer:
    """Waits for tools, for any number of callers at once. `find` looks up a tool like a call does."""

    def __init__(self, requests: Awaited, find: Callable[[str], Entry | None]) -> None:
        self._requests = requests
        self._find = find

    async def obtain(
        self, name: str, request: Requested | None = None, *, experiment: str = "", seconds: float | None = None
    ) -> Tool:
        """The tool of that name, as soon as it exists.

        If it is missing, the request is filed: a text, a file, or its fields. Without one, this
        waits for the open request for the name. `experiment` waits with it. Raises PERMANENT if the tool cannot be built, CANCELLED if the request was
        cancelled, and TIMEOUT after so many seconds: the request then stays open. The id is in `details["requestId"]`
        each time.
        """
        if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
            raise ToolError(
                Kind.VALIDATION, "seconds is how long to wait at most; give a number, or None to wait for ever"
            )
        tool = await asyncio.to_thread(self._look, name)
        if tool is not None:
            return tool
        try:
            filed = await asyncio.to_thread(self._ask, name, request, experiment)
        except ToolError as problem:
            # It may have been published between the two lookups.
            if problem.kind is Kind.CONFLICT and (tool := await asyncio.to_thread(self._look, name)) is not None:
                return tool
            raise
        return await self._wait(name, filed.id, seconds)

    async def _wait(self, name: str, request_id: str, seconds: float | None) -> Tool:
        details = {"requestId": request_id}
        try:
            async with asyncio.timeout(seconds):
                filed = await self._requests.until_over(request_id)
        except TimeoutError:
            message = f"{name} did not exist after {seconds:g} seconds; {request_id} stays open, wait for it again"
            raise ToolError(Kind.TIMEOUT, message, retryable=True, details=details) from None
        if filed.status is Status.CANCELLED:
            raise ToolError(Kind.CANCELLED, f"{request_id} was cancelled: {filed.error}", details=details)
        # A tool of that name may have been built for another request.
        if filed.status is Status.FAILED and (tool := await asyncio.to_thread(self._look, name)) is not None:
            return tool
        if filed.status is Status.FAILED:
            raise ToolError(Kind.PERMANENT, f"{name} could not be built: {filed.error}", details=details)
        return await self._announced(name, filed)

    async def _announced(self, name: str, filed: Filed) -> Tool:
        """The live tool of a request that is ready."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SEEN_SECONDS):
                while True:
                    tool = await asyncio.to_thread(self._look, name)
                    if tool is not None:
                        return tool
                    await asyncio.sleep(POLL_SECONDS)
        message = f"{filed.id} is ready as {filed.tool}, but no such tool is registered here"
        cure = Cure("have the Builder work in this project, or look at: crib doctor")
        raise ToolError(Kind.NOT_FOUND, message, cure=cure, details={"requestId": filed.id, "tool": filed.tool})

    def _look(self, name: str) -> Tool | None:
        entry = self._find(name)
        if entry is None:
            return None
        if not entry.enabled:
            raise ToolError(Kind.DISABLED, f"{name} exists, but is disabled: {entry.reason}")
        return entry.tool

    def _ask(self, name: str, given: Requested | None, experiment: str) -> Filed:
        if given is None:
            return self._join(name, experiment)
        place = "request" if isinstance(given, str | Mapping) else str(given)
        request = read_request(_text_of(given), place=place, numbered=False)
        if request.name != name:
            message = f"the request asks for {request.name!r:.80}, and {name!r:.80} is wanted; use one name in both"
            raise ToolError(Kind.VALIDATION, message)
        text = set_field(request.text, "experiment_blocked", experiment) if experiment else request.text
        return self._requests.new(text).filed

    def _join(self, name: str, experiment: str) -> Filed:
        """The open request for the name; the experiment waits for it too."""
        filed = self._requests.find_open(name)
        if filed is None:
            message = (
                f"there is no tool {name[:80]!r} and no open request for one; give the request that says what it does"
            )
            raise ToolError(Kind.NOT_FOUND, message)
        return self._requests.join(filed, experiment) if experiment else filed


def _text_of(given: Requested) -> str | bytes:
    if isinstance(given, Mapping):
        return write_request(given)
    if isinstance(given, str):
        return given
    data = read_small(given, MAX_TEXT_BYTES)
    if data is None:
        message = (
            f"{given} is not a file of at most {MAX_TEXT_BYTES} bytes; name the request that says what the tool does"
        )
        raise ToolError(Kind.NOT_FOUND, message)
    return data


def fields_from_call(name: str, arguments: object) -> Fields | None:
    """The fields of a request for a missing tool that was called; None if no tool can have such a name.

    The values of the arguments are left out: they may be private, and a request has many readers.
    """
    spelled = _spell(name)
    if not spelled:
        return None
    given = arguments.items() if isinstance(arguments, Mapping) else ()
    inputs = [_input(name, value) for name, value in given if isinstance(name, str) and is_argument_name(name)]
    return _fields(spelled, OF_CALL) | {"inputs": inputs[:MAX_ITEMS]}


def fields_from_search(text: str) -> Fields | None:
    """The fields of a request for what a search did not find; None if the words are too few or too many for a name, or no words.

    A single word is too often an unfinished search, and a long number is likely to be private.
    """
    if len(text) > MAX_TEXT or not _QUESTION.fullmatch(text.strip()) or _LONG_NUMBER.search(text):
        return None
    spelled = _spell(text.strip().rstrip("?!."))
    return _fields(spelled, OF_SEARCH) if 0 < spelled.count("_") < MAX_WORDS else None


def _input(name: str, value: object) -> Fields:
    return {"name": name, "type": _TYPES.get(type(value), "string"), "description": INPUT, "required": True}


def _spell(text: str) -> str:
    """The name as a request writes it; empty if that takes more than dashes, spaces and capitals."""
    if len(text) > MAX_TEXT:
        return ""
    name = _GAPS.sub("_", _CAPITAL.sub("_", text.strip())).lower().strip("_")
    return "" if name_problem(name) else name


def _fields(name: str, description: str) -> Fields:
    return {
        "name": name,
        "description": description,
        "priority": str(Priority.LOW),
        "requested_by": REQUESTED_BY,
    }


class AutoRequests:
    """Files a request for each missing tool that was called or searched for: once per name, with a limit on open ones.

    Both methods wait for a moment at most and never raise; in an event loop call them in a thread. They return the id of the
    request for the name, if it is known in time. If `suggest` finds a similar name, the name is most likely a typing error
    and nothing is filed.
    """

    def __init__(
        self,
        requests: Requests,
        *,
        suggest: Callable[[str], str] = lambda _: "",
        most: int = MAX_OPEN,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._requests = requests
        self._suggest = suggest
        self._most = most
        self._patience = patience
        self._known: dict[str, str] = {}
        self._back_off_until = 0.0
        self._places = threading.BoundedSemaphore(MAX_IN_PROGRESS)
        self._filing = threading.Lock()

    def of_call(self, name: str, arguments: object) -> str | None:
        """File a request for the tool that was called."""
        return self._request(fields_from_call(name, arguments))

    def of_search(self, text: str) -> str | None:
        """File a request for the tool that was searched for."""
        return self._request(fields_from_search(text))

    def _request(self, fields: Fields | None) -> str | None:
        if fields is None:
            return None
        known = self._known.get(str(fields["name"]))
        if known is not None or monotonic() < self._back_off_until or not self._places.acquire(blocking=False):
            return known
        filed: Future[str | None] = Future()
        threading.Thread(target=self._file_alone, args=(fields, filed), name="toolcrib-request", daemon=True).start()
        try:
            return filed.result(self._patience)
        except TimeoutError:
            return None

    def _file_alone(self, fields: Fields, filed: Future[str | None]) -> None:
        found: str | None = None
        try:
            with self._filing:
                found = self._file(fields)
        except ToolError as problem:
            logger.warning("no request was filed for %s: %s", fields["name"], problem.message)
            self._back_off_until = monotonic() + BACK_OFF_SECONDS
        except Exception:  # an automatic request is an extra, and nothing may depend on it
            logger.exception("no request was filed for %s", fields["name"])
            self._back_off_until = monotonic() + BACK_OFF_SECONDS
        finally:
            self._places.release()
            filed.set_result(found)

    def _file(self, fields: Fields) -> str | None:
        """The id of the request for the name; it is filed unless there is one already or too many are open."""
        name = str(fields["name"])
        if name in self._known:
            return self._known[name]
        requests = self._requests.list()
        found = next((filed.id for filed in reversed(requests) if filed.name == name), None)
        if found is None:
            if self._suggest(name):
                return None
            if sum(MARK in filed.text and not filed.status.is_final for filed in requests) >= self._most:
                logger.warning("no request was filed for %s: %d of this kind are open already", name, self._most)
                self._back_off_until = monotonic() + BACK_OFF_SECONDS
                return None
            found = self._requests.new(fields, strict=False).filed.id
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[name] = found
        return found
