"""`crib call`: make a call, ask for missing grants and confirmation, print its result."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from toolcrib.model.call import LOG_LEVELS, Call, cannot_ask
from toolcrib.model.errors import Kind
from toolcrib.toolkit.cli import (
    ExitCode,
    WrongUseError,
    agrees,
    code_of_error,
    complain,
    complain_about,
    is_terminal,
    log_on_stderr,
    mention_problems,
    on_one_line,
    say,
    say_json,
    say_text,
)
from toolcrib.toolkit.cli.options import CALL_OPTIONS, CONFIRM, GRANT, JSON, PROJECT, URL, read_arguments, read_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolcrib.model.call import ClientLink, Question
    from toolcrib.model.result import Result, Verdict
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.cli.options import Line
    from toolcrib.toolkit.client_protocol import CallingCrib, ProjectCrib

LocalT = TypeVar("LocalT")


def call_command(words: Sequence[str], opener: Opener[ProjectCrib]) -> ExitCode:
    """`crib call NAME key=value …`."""
    line = read_line(words, CALL_OPTIONS)
    opener = opener_of(line, opener)
    return call_tool(line, line.words, lambda grants: opener.open_calling(line.last(URL.name), grants=grants))


def opener_of(line: Line, opener: Opener[LocalT]) -> Opener[LocalT]:
    """The opener of the project that the line names, else the one that was given."""
    folder = line.last(PROJECT.name)
    return opener if folder is None else opener.in_folder(folder)


def call_tool(line: Line, words: Sequence[str], opened: Callable[[frozenset[str]], CallingCrib]) -> ExitCode:
    """Call the tool that the words name, in a crib opened with the grants it needs, and print the result."""
    if not words:
        raise WrongUseError("name a tool: crib call NAME key=value …; list the tools with: crib list")
    with log_on_stderr(verbose=line.has("--verbose")):
        result = perform(line, words, opened)
    _print(line, result)
    return ExitCode.DONE if result.error is None else code_of_error(result.error)


def make_call(crib: CallingCrib, line: Line, words: Sequence[str]) -> Call:
    """The call that was typed; its arguments are parsed by the schema of the tool."""
    name, *pairs = words
    return Call(
        name=name,
        arguments=read_arguments(line, pairs, crib.parameters_of(name) if pairs else {}),
        caller=crib.caller,
        mode=line.mode,
        confirmation=line.last(CONFIRM.name),
        deadline=_deadline(line),
    )


def perform(line: Line, words: Sequence[str], opened: Callable[[frozenset[str]], CallingCrib]) -> Result:
    """Call; if a capability is missing and a person grants it, call once more with it."""
    grants = line.all(GRANT.name)
    with opened(grants) as crib:
        call = make_call(crib, line, words)
        crib.get_ready(call.name)
        result = _attempt(crib, line, call)
        missing = _missing_capabilities(crib, call, result)
    if not missing or not agrees(f"{call.name} requires {', '.join(missing)}, which is not granted. Grant it once?"):
        return result
    with opened(grants | frozenset(missing)) as crib:
        return _attempt(crib, line, replace(call, deadline=_deadline(line)))


def _attempt(crib: CallingCrib, line: Line, call: Call) -> Result:
    """Call; if the call needs confirmation and gets it, call again with the token of the first result."""
    result = _call(crib, call)
    if result.error is not None and code_of_error(result.error) is ExitCode.UNKNOWN_TOOL:
        mention_problems(crib)
    verdict = _refusal(crib, call, result, Kind.CONFIRMATION_REQUIRED)
    # A server gives a token to people alone; a call of another has to be approved there.
    if result.error is None or verdict is None or "confirmation" not in result.error.details:
        return result
    question = f"{verdict.reason}.\n{call.name} {_show(call.arguments)}\nCall it?"
    if not (line.has("--yes") or agrees(question)):
        return result
    token = str(result.error.details["confirmation"])
    return _call(crib, replace(call, confirmation=token, deadline=_deadline(line)))


def _call(crib: CallingCrib, call: Call) -> Result:
    """Make the call; what the tool tells while it runs is shown on a terminal."""
    with terminal_link() as link:
        return crib.call_sync(call if link is None else replace(call, client=link))


def _missing_capabilities(crib: CallingCrib, call: Call, result: Result) -> list[str]:
    if crib.url:
        return []  # grants of a server are its own
    verdict = _refusal(crib, call, result, Kind.CAPABILITY_MISSING)
    missing = None if verdict is None else verdict.details.get("missing")
    return [str(name) for name in missing] if isinstance(missing, list) else []


def _refusal(crib: CallingCrib, call: Call, result: Result, kind: Kind) -> Verdict | None:
    """The verdict that refused the call for this reason, as the gates say: a tool can put anything into its error."""
    if result.error is None or result.error.kind is not kind:
        return None
    finding = crib.explain(call).refusal
    if finding is None or finding.verdict is None or finding.verdict.kind is not kind:
        return None
    return finding.verdict


def _print(line: Line, result: Result) -> None:
    if line.has(JSON.name):
        say_json(result.to_json())
        return
    if result.value is not None:
        _say_value(result.value, raw=line.has("--raw"))
    _say_beside(result, line.last(URL.name))
    if result.error is not None:
        complain_about(result.error)
        if token := result.error.details.get("confirmation"):
            complain(f"to confirm exactly this call add: --confirm {token}")


def _say_value(value: object, *, raw: bool) -> None:
    if not isinstance(value, str):
        say_json(value)
    elif raw:
        say(value)
    else:
        say_text(value)


def _say_beside(result: Result, url: str | None) -> None:
    """Print the rest of a result: stderr, warnings, intents, and how to read a stored value."""
    stderr, warnings, kept = (result.meta.get(name) for name in ("stderr", "warnings", "kept"))
    if isinstance(stderr, str) and stderr:
        complain(f"the tool wrote: {stderr.rstrip()}")
    for warning in warnings if isinstance(warnings, list) else ():
        complain(f"warning: {warning}")
    for intent in result.intents:
        complain(f"the tool asks the host: {_show(intent.to_json())}")
    if isinstance(kept, dict):
        shown = kept.get("shown")
        rest = f"crib result {kept.get('handle')} --offset {shown}" + (f" --url {url}" if url else "")
        complain(f"the result has {kept.get('bytes')} bytes, {shown} characters are shown; the rest: {rest}")


def _show(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _deadline(line: Line) -> float | None:
    return None if line.seconds is None else time.monotonic() + line.seconds


# What a running tool tells the client of its call, for a person at a terminal.

MAX_SHOWN_LETTERS = 500
# The least urgent messages of the log that are shown.
SHOWN = "info"
# Go to the start of the line, and clear it.
FROM_THE_START = "\r\x1b[K"


class TerminalLink:
    """Shows progress in one line that is written over, and messages of the log in lines of their own; it asks no questions."""

    can_ask = False

    def __init__(self) -> None:
        self._shows_progress = False

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Show how far the call is."""
        figure = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
        self._write(on_one_line(f"{figure} {message}")[:MAX_SHOWN_LETTERS])
        self._shows_progress = True

    def log(self, level: str, data: object, logger: str) -> None:
        """Show a message of the log."""
        if LOG_LEVELS.index(level) < LOG_LEVELS.index(SHOWN):
            return
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self._write(on_one_line(f"{logger}: {level}: {text}")[:MAX_SHOWN_LETTERS] + "\n")
        self._shows_progress = False

    async def ask(self, question: Question) -> dict[str, object]:
        """Refuse: there is a person, but no form to ask it with."""
        raise cannot_ask(question.method)

    def clear(self) -> None:
        """Remove the line of progress, so that the result stands alone."""
        if self._shows_progress:
            self._write("")
            self._shows_progress = False

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{FROM_THE_START}{text}" if self._shows_progress else text)
        sys.stderr.flush()


@contextmanager
def terminal_link() -> Iterator[ClientLink | None]:
    """A link for one call; None where standard error is not shown to a person."""
    if not is_terminal(sys.stderr):
        yield None
        return
    link = TerminalLink()
    try:
        yield link
    finally:
        link.clear()
