"""Requests that file themselves: what an agent called or searched for, and what is not there."""

from __future__ import annotations

import keyword
import logging
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.model.tool import MAX_NAME
from toolcrib.model.toolrequest import Priority
from toolcrib.pure.requests.parameters import MAX_ITEMS, is_argument_name
from toolcrib.pure.requests.reading import SNAKE_CASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.crib.requests import Requests

    Fields = dict[str, object]

logger = logging.getLogger("toolcrib.requests")

MAX_OPEN = 100
# How long a call that found no tool waits for the number of its request; it is filed in any case.
PATIENCE_SECONDS = 0.5
# So many wishes are on their way at once; what comes besides is forgotten.
MAX_ON_THEIR_WAY = 8
MAX_REMEMBERED = 1_000
# How long nothing is asked of a queue that holds too many of these, or cannot be reached.
QUIET_SECONDS = 10.0
MAX_WORDS = 8
MAX_TEXT = 200

MARK = "Filed by itself:"
OF_CALL = f"{MARK} a tool of this name was called, and there is none."
OF_SEARCH = f"{MARK} a tool was searched for by these words, and none was found."
REQUESTED_BY = "fullsend"
INPUT = "Given by the call that found no tool."

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


def wish_from_call(name: str, arguments: object) -> Fields | None:
    """What to ask for when a tool was called that is not there; None if no tool can have such a name.

    The values of the arguments stay where they are: they may be private, and a request is read by many.
    """
    spelled = _spell(name)
    if not spelled:
        return None
    given = arguments.items() if isinstance(arguments, Mapping) else ()
    inputs = [_input(name, value) for name, value in given if isinstance(name, str) and is_argument_name(name)]
    return _fields(spelled, OF_CALL) | {"inputs": inputs[:MAX_ITEMS]}


def wish_from_search(text: str) -> Fields | None:
    """What to ask for when a search found nothing; None if the words are too few or too many for a name, or no words.

    One word is no tool yet, but often the beginning of what somebody types; and a long number is no part of a name, but of
    what is private.
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
    is_name = SNAKE_CASE.fullmatch(name) and len(name) <= MAX_NAME and not keyword.iskeyword(name)
    return name if is_name else ""


def _fields(name: str, description: str) -> Fields:
    return {
        "name": name,
        "description": description,
        "priority": str(Priority.LOW),
        "requested_by": REQUESTED_BY,
    }


class Wishing:
    """Files what was called or searched for in vain: once for each name, so many open ones at most, and held up by nothing.

    Both methods take a moment at most and never raise; within a loop call them in a thread. They return the id of the
    request for the name, if it is known in time. `suggest` hints at what was perhaps meant by a name: then it is most likely
    a slip, and nothing is filed.
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
        self._quiet_until = 0.0
        self._places = threading.BoundedSemaphore(MAX_ON_THEIR_WAY)
        self._filing = threading.Lock()

    def of_call(self, name: str, arguments: object) -> str | None:
        """Wish for the tool that was called."""
        return self._wish(wish_from_call(name, arguments))

    def of_search(self, text: str) -> str | None:
        """Wish for the tool that was searched for."""
        return self._wish(wish_from_search(text))

    def _wish(self, fields: Fields | None) -> str | None:
        if fields is None:
            return None
        known = self._known.get(str(fields["name"]))
        if known is not None or monotonic() < self._quiet_until or not self._places.acquire(blocking=False):
            return known
        filed: Future[str | None] = Future()
        threading.Thread(target=self._file_alone, args=(fields, filed), name="toolcrib-wish", daemon=True).start()
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
            self._quiet_until = monotonic() + QUIET_SECONDS
        except Exception:  # a wish is an extra, and nothing may depend on it
            logger.exception("no request was filed for %s", fields["name"])
            self._quiet_until = monotonic() + QUIET_SECONDS
        finally:
            self._places.release()
            filed.set_result(found)

    def _file(self, fields: Fields) -> str | None:
        """The id of the request for the name, which is filed unless there is one or there are too many."""
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
                self._quiet_until = monotonic() + QUIET_SECONDS
                return None
            found = self._requests.new(fields, strict=False).filed.id
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[name] = found
        return found
