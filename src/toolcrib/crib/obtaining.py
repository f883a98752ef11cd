"""Getting a tool that may not exist yet: it is there, or it is asked for and waited for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.crib.requests import MAX_TEXT_BYTES
from toolcrib.ground.files.regular import read_small
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status
from toolcrib.pure.requests import read_request, set_field, write_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.crib.requests import Requests
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.model.toolrequest import Filed

    Wish = str | Path | Mapping[str, object]

# What was announced is in the project already; the catalogue may look there only after a moment.
SEEN_SECONDS = 5.0
LOOK_SECONDS = 0.05


class Obtaining:
    """Waits for tools, for any number of callers at once. `find` looks a tool up as a call would."""

    def __init__(self, requests: Requests, find: Callable[[str], Entry | None]) -> None:
        self._requests = requests
        self._find = find

    async def obtain(
        self, name: str, request: Wish | None = None, *, experiment: str = "", seconds: float | None = None
    ) -> Tool:
        """The tool of that name, as soon as it is there.

        One that is missing is asked for with the request: a text, a file of it, or its fields. Without a request, the one is
        waited for that is open for the name. `experiment` waits with it. Raises PERMANENT if it cannot be built, CANCELLED
        if nobody wants it any more, and TIMEOUT after so many seconds: the request stays open then, and its id is in
        `details["requestId"]` each time.
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
            # It may have come between two looks.
            if problem.kind is Kind.CONFLICT and (tool := await asyncio.to_thread(self._look, name)) is not None:
                return tool
            raise
        return await self._wait(name, filed.id, seconds)

    async def _wait(self, name: str, request_id: str, seconds: float | None) -> Tool:
        details = {"requestId": request_id}
        try:
            async with asyncio.timeout(seconds):
                filed = await self._requests.waiting.until_over(request_id)
        except TimeoutError:
            message = f"{name} was not there after {seconds:g} seconds; {request_id} stays open, wait for it again"
            raise ToolError(Kind.TIMEOUT, message, retryable=True, details=details) from None
        if filed.status is Status.CANCELLED:
            raise ToolError(Kind.CANCELLED, f"{request_id} was cancelled: {filed.error}", details=details)
        # What was asked for may have been built for somebody who asked otherwise for a tool of that name.
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
                    await asyncio.sleep(LOOK_SECONDS)
        message = (
            f"{filed.id} is ready as {filed.tool}, but no such tool is registered here; "
            "have the Builder work in this project, or look at: crib doctor"
        )
        raise ToolError(Kind.NOT_FOUND, message, details={"requestId": filed.id, "tool": filed.tool})

    def _look(self, name: str) -> Tool | None:
        entry = self._find(name)
        if entry is None:
            return None
        if not entry.enabled:
            raise ToolError(Kind.DISABLED, f"{name} is there, but switched off: {entry.reason}")
        return entry.tool

    def _ask(self, name: str, wish: Wish | None, experiment: str) -> Filed:
        if wish is None:
            return self._join(name, experiment)
        place = "request" if isinstance(wish, str | Mapping) else str(wish)
        request = read_request(_text_of(wish), place=place, numbered=False)
        if request.name != name:
            message = f"the request asks for {request.name!r:.80}, and {name!r:.80} is wanted; use one name in both"
            raise ToolError(Kind.VALIDATION, message)
        text = set_field(request.text, "experiment_blocked", experiment) if experiment else request.text
        return self._requests.new(text).filed

    def _join(self, name: str, experiment: str) -> Filed:
        """The open request for the name; the experiment waits for it too."""
        filed = self._requests.find_open(name)
        if filed is None:
            message = f"there is no tool {name[:80]!r}, and nobody builds one; give the request that says what it does"
            raise ToolError(Kind.NOT_FOUND, message)
        return self._requests.join(filed, experiment) if experiment else filed


def _text_of(wish: Wish) -> str | bytes:
    if isinstance(wish, Mapping):
        return write_request(wish)
    if isinstance(wish, str):
        return wish
    data = read_small(wish, MAX_TEXT_BYTES)
    if data is None:
        message = (
            f"{wish} is not a file of at most {MAX_TEXT_BYTES} bytes; name the request that says what the tool does"
        )
        raise ToolError(Kind.NOT_FOUND, message)
    return data
