"""`crib call --stream`: print what a tool yields and its progress while the call runs."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.events import Chunk, LogMessage
from toolcrib.model.result import Result
from toolcrib.toolkit.cli import complain, is_terminal, on_one_line, say, say_json_line, say_text, visible
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from toolcrib.interfaces.cli import TerminalLink
    from toolcrib.model.call import Call
    from toolcrib.model.events import StreamEvent
    from toolcrib.toolkit.client_protocol import CallingCrib


def stream_call(crib: CallingCrib, call: Call, link: TerminalLink | None, *, as_json: bool, raw: bool) -> Result:
    """Make the call and print its chunks; the result comes without the value that they were.

    `link` shows progress on a terminal; without one it is printed in lines to standard error. `as_json` prints every event
    but the result as one line of JSON.
    """
    entry = None if as_json else crib.find(call.name)
    output = None if entry is None else entry.tool.output_schema
    printer = _Lines() if as_json else _Printer(link, raw=raw, joins=joins_text(output))
    with closing(crib.stream_sync(call)) as events:
        for event in events:
            if isinstance(event, Result):
                return printer.finish(event)
            printer.show(event)
            if sys.stdout is not None:
                sys.stdout.flush()
    return Result(error=ToolError(Kind.INTERNAL, "the call ended without a result"))


class _Lines:
    """Prints events as JSON, one in each line."""

    def show(self, event: StreamEvent) -> None:
        name = "chunk" if isinstance(event, Chunk) else "log" if isinstance(event, LogMessage) else "progress"
        say_json_line({"event": name, **event.to_json()})

    def finish(self, result: Result) -> Result:
        return result


class _Printer:
    """Prints chunks to standard output, texts as they are and values as JSON, and the rest to standard error."""

    def __init__(self, link: TerminalLink | None, *, raw: bool, joins: bool) -> None:
        self._link = link
        self._raw = raw
        self._joins = joins
        self._printed = 0
        self._last = ""

    def show(self, event: StreamEvent) -> None:
        if isinstance(event, Chunk):
            self._chunk(event.value)
        elif isinstance(event, LogMessage):
            text = event.data if isinstance(event.data, str) else json.dumps(event.data, ensure_ascii=False)
            if self._link is not None:
                self._link.log(event.level, event.data, event.logger)
            else:
                complain(on_one_line(f"{event.logger}: {event.level}: {text}"))
        elif not isinstance(event, Result):
            if self._link is not None:
                self._link.progress(event.progress, event.total, event.message)
            else:
                total = "" if event.total is None else f"/{event.total:g}"
                complain(on_one_line(f"{event.progress:g}{total} {event.message}").rstrip())

    def finish(self, result: Result) -> Result:
        """The result as it is printed after the chunks."""
        if self._link is not None:
            self._link.clear()
        if not self._printed:
            return result
        if self._last and not self._last.endswith("\n"):
            say("")
        if result.error is not None:
            complain("what was printed was not checked, and the call failed")
        meta = {name: fact for name, fact in result.meta.items() if name != "kept"}
        return replace(result, value=None, meta=meta)

    def _chunk(self, value: object) -> None:
        if self._link is not None:
            self._link.clear()
        self._printed += 1
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if self._joins and isinstance(value, str):
            self._last = value
            shown = value if self._raw or not is_terminal(sys.stdout) else visible(value)
            if sys.stdout is not None:
                sys.stdout.write(shown)
        elif self._raw:
            say(text.removesuffix("\n"))
        else:
            say_text(text.removesuffix("\n"))
