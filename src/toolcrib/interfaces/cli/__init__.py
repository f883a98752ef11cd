"""The command line: its entry, which opens cribs on demand and turns errors into exit codes, and `crib call`.

Modules are loaded lazily here, so that `crib call` loads neither Click nor other commands.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolcrib.lib import load
from toolcrib.model.call import LOG_LEVELS, Call, cannot_ask
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.toolkit.cli import (
    CALL_OPTIONS,
    CONFIRM,
    GRANT,
    JSON,
    PROJECT,
    STREAM,
    URL,
    CommandError,
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
    output_as_asked,
    read_arguments,
    read_grants,
    read_line,
    require_project,
    say,
    say_error,
    say_json,
    say_json_line,
    say_text,
    wants_help,
)
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from toolcrib.client.remote_crib import RemoteCrib
    from toolcrib.core.plugins import Plugins
    from toolcrib.crib import Crib
    from toolcrib.model.call import Question
    from toolcrib.model.protocols import Journal
    from toolcrib.model.result import Result, Verdict
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli import Granted, Line
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import AnyCrib, CallingCrib, ProjectCrib

LocalT = TypeVar("LocalT")


def register(plugins: Plugins) -> None:
    """Add the commands that find, call and check tools, and those around a project."""
    plugins.add_command("list", "toolcrib.interfaces.cli.commands:list_", "List the tools.")
    plugins.add_command("show", "toolcrib.interfaces.cli.commands:show", "Show everything about a tool.")
    plugins.add_command("call", "toolcrib.interfaces.cli.commands:call", "Call a tool.")
    plugins.add_command("explain", "toolcrib.interfaces.cli.commands:explain", "Explain why a call would run or not.")
    plugins.add_command("run", "toolcrib.interfaces.cli.commands:run_file", "List or call the tools of a Python file.")
    plugins.add_command("result", "toolcrib.interfaces.cli.commands:result", "Print the rest of a large result.")
    plugins.add_command("help", "toolcrib.interfaces.cli.program:help_", "Show how a command is used.")
    plugins.add_command("version", "toolcrib.interfaces.cli.commands:version", "Print the version.")
    plugins.add_command(
        "completion", "toolcrib.interfaces.cli.program:completion", "Print the completion script of a shell."
    )
    plugins.add_command(
        "init", "toolcrib.interfaces.cli.project_commands:init", "Write a project with a first tool and its test."
    )
    plugins.add_command(
        "check", "toolcrib.interfaces.cli.project_commands:check", "Report what is wrong with the tools."
    )
    plugins.add_command(
        "doctor", "toolcrib.interfaces.cli.project_commands:doctor", "Show versions, settings, sandbox and problems."
    )


def main(words: Sequence[str] | None = None, opening: object = None) -> int:
    """Run the command line with these words, by default those of the process; returns the exit code.

    `opening` is the connection of `crib mcp`, whose first request was answered before this was loaded.
    """
    words = sys.argv[1:] if words is None else words
    with output_as_asked(words):
        try:
            code = _run(words, opening)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            _give_up_stdout()
            return ExitCode.READER_GONE
        except OSError as problem:
            complain(f"{problem.filename or 'output'}: {problem.strerror}")
            _give_up_stdout()
            return ExitCode.FAILED
    return code


def _run(words: Sequence[str], opening: object) -> int:
    """Run the command line; print an error, as JSON if that is asked for."""
    try:
        # Blocked while modules were loaded.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return _dispatch(words, opening)
    except KeyboardInterrupt:
        complain("interrupted")
        return say_error(ToolError(Kind.CANCELLED, "interrupted"), ExitCode.INTERRUPTED)
    except CommandError as problem:
        for line in problem.message.splitlines():
            complain(line)
        return say_error(problem, problem.code)
    except (WrongUseError, SettingsError) as problem:
        complain(str(problem))
        error = problem if isinstance(problem, ToolError) else ToolError(Kind.VALIDATION, str(problem))
        return say_error(error, ExitCode.WRONG_USE)
    except ToolError as problem:
        complain_about(problem)
        return say_error(problem, code_of_error(problem))
    except BrokenPipeError:
        raise
    except OSError as problem:
        if problem.filename is None:
            raise  # the output itself cannot be written
        message = f"{problem.filename}: {problem.strerror}"
        complain(message)
        return say_error(ToolError(Kind.PERMANENT, message), ExitCode.FAILED)


@record(kw_only=False)
class CribOpener:
    """Open the crib of a project, by default that of the current folder, or of a server."""

    project: str | None = None

    def in_folder(self, project: str) -> Self:
        """An opener for the named project folder."""
        return replace(self, project=project)

    @property
    def folder(self) -> Path:
        """The named project folder, else the project around the current folder, else the current folder."""
        return self._find_here() if self.project is None else Path(self.project)

    def open_local(
        self,
        *,
        grants: Granted | None = None,
        tools: Iterable[Tool] = (),
        observe: bool = False,
        journal: Journal | None = None,
    ) -> Crib:
        """The crib of the project; without a project, one that stores nothing on disk."""
        folder = self.folder
        is_project: Callable[[Path], bool] = load("toolcrib.infra.settings:is_project")
        exists = self.project is not None or is_project(folder)
        crib: Crib = load("toolcrib.crib:Crib")(
            folder if exists else None,
            caller=name_caller(),
            tools=tools,
            given_by=load("toolcrib.infra.settings:COMMAND_LINE"),
            observe=observe,
            journal=journal,
            grants=grants,
            # Outside every project there are still the tools of the user.
            scripts=None if exists else {"folders": [load("toolcrib.infra.settings:USER_SCRIPTS")]},
        )
        return crib

    def open_folder(self, folder: Path, *, caller: str) -> Crib:
        """The crib of exactly this folder, even if another project was named."""
        crib: Crib = load("toolcrib.crib:Crib")(folder, caller=caller)
        return crib

    def open_calling(
        self, url: str | None, *, grants: Granted | None = None, tools: Iterable[Tool] = (), observe: bool = False
    ) -> CallingCrib:
        """The crib at the URL, else that of the project, to make calls."""
        if url is not None:
            return self._open_remote(url, grants)
        return self.open_local(grants=grants, tools=tools, observe=observe)

    def open_any(self, url: str | None, *, grants: Granted | None = None) -> AnyCrib:
        """The crib at the URL, else that of the project."""
        return self._open_remote(url, grants) if url is not None else self.open_local(grants=grants)

    def open_durable(self, url: str | None) -> AnyCrib:
        """The same as `open_any`; refuses a crib that stores nothing on disk."""
        if url is not None:
            return self._open_remote(url)
        crib = self.open_local()
        require_project(crib.settings)
        return crib

    def _open_remote(self, url: str, grants: Granted | None = None) -> RemoteCrib:
        if self.project is not None:
            raise WrongUseError("--url names a server, and --project a folder of this machine; leave one of them out")
        if grants:
            raise WrongUseError(
                "--grant: what tools may use is set on the server of --url, in [grants]; leave --grant out"
            )
        token = os.environ.get(load("toolcrib.client.connection:TOKEN_VARIABLE"))
        try:
            crib: RemoteCrib = load("toolcrib.client.remote_crib:RemoteCrib")(url, token=token)
        except ToolError as problem:
            if problem.kind is Kind.VALIDATION:
                raise WrongUseError(f"--url: {problem.message}") from problem
            raise
        return crib

    def _find_here(self) -> Path:
        """The project around the current folder, else that folder."""
        found: Path = load("toolcrib.infra.settings:find_project")(
            Path.cwd(),
            lambda trusted, other: f"if you trust it, write: -C {trusted}, else: -C {other}",
            load("toolcrib.core.plugins:Plugins")().tables(),
        )
        return found


def _dispatch(words: Sequence[str], opening: object) -> int:
    """Run `crib call` and `crib mcp` directly, and every other command through Click."""
    if words[:1] == ["call"] and not wants_help(words):
        return call_command(words[1:], CribOpener())
    if opening is not None:
        opener = CribOpener(*words[2:])
        return int(load("toolcrib.interfaces.mcp.stdio_command:serve_project")(opener, opening))
    return int(load("toolcrib.interfaces.cli.program:run")(words, CribOpener()))


def _give_up_stdout() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def name_caller() -> str:
    """The user of the operating system, by uid, because environment variables can be set to anything."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


# `crib call`: make a call, ask for missing grants and confirmation, print its result.


def call_command(words: Sequence[str], opener: Opener[ProjectCrib]) -> ExitCode:
    """`crib call NAME key=value …`."""
    line = read_line(words, CALL_OPTIONS)
    opener = opener_of(line, opener)
    return call_tool(line, line.words, lambda grants: opener.open_calling(line.last(URL.name), grants=grants))


def opener_of(line: Line, opener: Opener[LocalT]) -> Opener[LocalT]:
    """The opener of the project that the line names, else the one that was given."""
    folder = line.last(PROJECT.name)
    return opener if folder is None else opener.in_folder(folder)


def call_tool(line: Line, words: Sequence[str], opened: Callable[[Granted], CallingCrib]) -> ExitCode:
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
        arguments=read_arguments(line, pairs, _parameters_of(crib, name) if pairs else {}),
        caller=crib.caller,
        mode=line.mode,
        confirmation=line.last(CONFIRM.name),
        deadline=_deadline(line),
    )


def _parameters_of(crib: CallingCrib, name: str) -> Mapping[str, object]:
    """The schema of a tool's arguments; empty if there is no such tool."""
    entry = crib.find(name)
    return {} if entry is None else entry.tool.parameters


def perform(line: Line, words: Sequence[str], opened: Callable[[Granted], CallingCrib]) -> Result:
    """Call; if a capability is missing and a person grants it, call once more with it."""
    grants = read_grants(line.all(GRANT.name), words[0])
    with opened(grants) as crib:
        call = make_call(crib, line, words)
        crib.get_ready(call.name)
        result = _attempt(crib, line, call)
        missing = _missing_capabilities(crib, call, result)
    if not missing or not agrees(f"{call.name} requires {', '.join(missing)}, which is not granted. Grant it once?"):
        return result
    with opened({**grants, call.name: [*grants.get(call.name, ()), *missing]}) as crib:
        return _attempt(crib, line, replace(call, deadline=_deadline(line)))


def _attempt(crib: CallingCrib, line: Line, call: Call) -> Result:
    """Call; if the call needs confirmation and gets it, call again with the token of the first result."""
    result = _call(crib, line, call)
    if result.error is not None and code_of_error(result.error) is ExitCode.UNKNOWN_TOOL:
        mention_problems(crib)
    verdict = _refusal(crib, call, result, Kind.CONFIRMATION_REQUIRED)
    # A server gives a token only to callers that may confirm; calls of others need approval there.
    if result.error is None or verdict is None or "confirmation" not in result.error.details:
        return result
    question = f"{verdict.reason}.\n{call.name} {_show(call.arguments)}\nCall it?"
    if not (line.has("--yes") or agrees(question)):
        return result
    token = str(result.error.details["confirmation"])
    return _call(crib, line, replace(call, confirmation=token, deadline=_deadline(line)))


def _call(crib: CallingCrib, line: Line, call: Call) -> Result:
    """Make the call; its progress and messages are shown on a terminal, and with `--stream` everywhere."""
    with terminal_link() as link:
        if line.has(STREAM.name):
            stream = load("toolcrib.interfaces.cli.call_events:stream_call")
            return stream(crib, call, link, as_json=line.has(JSON.name), raw=line.has("--raw"))  # type: ignore[no-any-return]  # it is a Result
        return crib.call_sync(call if link is None else replace(call, client=link))


def _missing_capabilities(crib: CallingCrib, call: Call, result: Result) -> list[str]:
    if crib.url:
        return []  # a server has its own grants
    verdict = _refusal(crib, call, result, Kind.CAPABILITY_MISSING)
    missing = None if verdict is None else verdict.details.get("missing")
    return [str(name) for name in missing] if isinstance(missing, list) else []


def _refusal(crib: CallingCrib, call: Call, result: Result, kind: Kind) -> Verdict | None:
    """The verdict that refused the call for this reason, from the gates themselves: a tool can put anything into its error."""
    if result.error is None or result.error.kind is not kind:
        return None
    finding = crib.explain(call).refusal
    if finding is None or finding.verdict is None or finding.verdict.kind is not kind:
        return None
    return finding.verdict


def _print(line: Line, result: Result) -> None:
    if line.has(JSON.name):
        if line.has(STREAM.name):
            say_json_line({"event": "result", **result.to_json()})
        else:
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
    """Print the rest of a result: what the tool printed, warnings, intents, and how to read a stored value."""
    warnings, kept = result.meta.get("warnings"), result.meta.get("kept")
    for stream, verb in (("stdout", "printed"), ("stderr", "wrote")):
        if printed := result.meta.get(stream):
            complain(f"the tool {verb}: {str(printed).rstrip()}")
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


# Progress and messages of a running tool, for a person at a terminal.

MAX_SHOWN_LETTERS = 500
BAR_LETTERS = 20
# The lowest level of log messages that is shown.
SHOWN = "info"
# Go to the start of the line, and clear it.
FROM_THE_START = "\r\x1b[K"


class TerminalLink:
    """Shows progress in one line, which is overwritten, and log messages in lines of their own; it does not support questions."""

    can_ask = False
    takes_chunks = False

    def __init__(self) -> None:
        self._shows_progress = False

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Show the progress of the call."""
        figure = f"{progress:g}" if total is None else f"{_bar(progress, total)} {progress:g}/{total:g}"
        self._write(on_one_line(f"{figure} {message}")[:MAX_SHOWN_LETTERS])
        self._shows_progress = True

    def log(self, level: str, data: object, logger: str) -> None:
        """Show a log message."""
        if LOG_LEVELS.index(level) < LOG_LEVELS.index(SHOWN):
            return
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self._write(on_one_line(f"{logger}: {level}: {text}")[:MAX_SHOWN_LETTERS] + "\n")
        self._shows_progress = False

    async def ask(self, question: Question) -> dict[str, object]:
        """Refuse: there is a person, but no form to ask it with."""
        raise cannot_ask(question.method)

    async def chunk(self, value: object) -> None:
        """No-op: chunks are events of `--stream`."""

    def clear(self) -> None:
        """Clear the line of progress before the result is printed."""
        if self._shows_progress:
            self._write("")
            self._shows_progress = False

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{FROM_THE_START}{text}" if self._shows_progress else text)
        sys.stderr.flush()


def _bar(progress: float, total: float) -> str:
    """The progress as a bar of fixed length, for any numbers that a tool reports."""
    share = progress / total if total > 0 else 0.0
    done = round(min(max(share, 0.0), 1.0) * BAR_LETTERS)
    return f"[{'#' * done}{'-' * (BAR_LETTERS - done)}]"


@contextmanager
def terminal_link() -> Iterator[TerminalLink | None]:
    """A link for one call; None if standard error is not a terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    link = TerminalLink()
    try:
        yield link
    finally:
        link.clear()
