"""Building blocks of commands: exit statuses, output, questions to the user, the log, and the parser of a command line.

`crib call` takes options, and arguments as key=value, key:=json, key=@file or one JSON document. Control characters are
escaped before anything is written to a terminal.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import sys
import traceback
from contextlib import contextmanager, suppress
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING

from toolcrib.core.plugins import later
from toolcrib.lib.documents import read_json
from toolcrib.lib.names import did_you_mean
from toolcrib.lib.schema_structure import properties_of, types_of
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.tool import MODES
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from toolcrib.infra.settings import Settings
    from toolcrib.model.result import Explanation
    from toolcrib.toolkit.client_protocol import Suggesting

    # Capabilities by the tools that they are granted to.
    Granted = Mapping[str, Collection[str]]


# Functions that clear a line of progress from the terminal before other output.
BUSY: list[Callable[[], None]] = []
YES = frozenset({"y", "yes"})


class ExitCode(IntEnum):
    """The exit statuses of commands; the list is closed."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    UNKNOWN_TOOL = 4
    NEEDS_CONFIRMATION = 5
    INTERRUPTED = 130
    READER_GONE = 141


MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "the tool failed, or check found problems",
    ExitCode.WRONG_USE: "wrong use or wrong settings",
    ExitCode.REFUSED: "a gate refused the call",
    ExitCode.UNKNOWN_TOOL: "there is no such tool",
    ExitCode.NEEDS_CONFIRMATION: "the call needs confirmation",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.READER_GONE: "the reader of the output closed the pipe",
}


class WrongUseError(Exception):
    """Invalid command line; the message says how to write it."""


class CommandError(ToolError):
    """A command failed; `code` is its exit status. Each line of the message is printed as an error line."""

    def __init__(self, kind: Kind, reason: str, *, cure: str = "", code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(kind, reason, cure=cure)
        self.code = code


@record(kw_only=False)
class Answer:
    """The result of a command, printed with `--json`; a person has read the same as text."""

    facts: Mapping[str, object]
    code: ExitCode = ExitCode.DONE


class _Output:
    """Whether standard output is JSON. If so, text for a person goes to standard error."""

    as_json = False


_OUTPUT = _Output()


@contextmanager
def output_as_asked(words: Sequence[str]) -> Iterator[None]:
    """Inside the block, standard output is only JSON if the command line has `--json`."""
    before = _OUTPUT.as_json
    _OUTPUT.as_json = _stands_in(words, JSON_SPELLINGS) and not wants_help(words)
    try:
        yield
    finally:
        _OUTPUT.as_json = before


def say_answer(answer: Answer, *, on_a_line: bool = False) -> ExitCode:
    """Print the result of a command if `--json` was given, and return its exit status."""
    if _OUTPUT.as_json:
        (say_json_line if on_a_line else say_json)(answer.facts)
    return answer.code


def say_error(error: ToolError, code: ExitCode) -> ExitCode:
    """Print an error as one line of JSON if `--json` was given, and return the exit status."""
    if _OUTPUT.as_json:
        facts = {**error.to_json(), "cure": error.cure.operator or None}
        say_json_line({"ok": False, "error": facts, "exitCode": int(code)})
    return code


def code_of_error(error: ToolError) -> ExitCode:
    """The exit status of a failed call. Only an error with a gate in its details is a refusal."""
    if isinstance(error, SettingsError):
        return ExitCode.WRONG_USE
    if "gate" not in error.details:
        return ExitCode.FAILED
    return _code_of_refusal(error.kind)


def code_of_explanation(explanation: Explanation) -> ExitCode:
    """The exit status that the explained call would have."""
    refusal = explanation.refusal
    if refusal is None or refusal.verdict is None:
        return ExitCode.DONE
    return _code_of_refusal(refusal.verdict.kind)


def _code_of_refusal(kind: Kind) -> ExitCode:
    special = {Kind.NOT_FOUND: ExitCode.UNKNOWN_TOOL, Kind.CONFIRMATION_REQUIRED: ExitCode.NEEDS_CONFIRMATION}
    return special.get(kind, ExitCode.REFUSED)


# Imported on first use, because most output is plain ASCII and does not need it.
show_hidden: Callable[[str], str] = later("toolcrib.lib.hidden_text:show_hidden")


def visible(text: str) -> str:
    """Escape every character that would control a terminal."""
    if text.isascii() and text.isprintable():
        return text
    # `show_hidden` keeps a carriage return, with which a terminal would overwrite the line.
    return show_hidden(text).replace("\r", "\\x0d")


def on_one_line(text: str) -> str:
    """The text on one line, with control characters escaped."""
    return visible(" ".join(text.split()))


def say(text: str) -> None:
    """Print text for a person: to standard output, or to standard error if standard output is JSON."""
    _write(sys.stderr if _OUTPUT.as_json else sys.stdout, text)


def complain(text: str) -> None:
    """Print an error line to standard error."""
    _write(sys.stderr, f"{paint('crib:', 'red', sys.stderr)} {visible(text)}")


def complain_about(error: ToolError) -> None:
    """Print an error with its cure, its kind, and the gate and setting that decided it."""
    complain(error.message)
    excerpt = error.details.get(EXCERPT)
    if isinstance(excerpt, str) and excerpt:
        _write(sys.stderr, indented(excerpt))
    grounds = [from_here(str(error.details[name])) for name in ("gate", "where") if error.details.get(name)]
    _write(sys.stderr, visible(f"      {error.kind}" + (f" ({', '.join(grounds)})" if grounds else "")))


def from_here(text: str) -> str:
    """The text with paths below the current folder made relative."""
    try:
        return text.replace(f"{os.getcwd()}/", "")  # noqa: PTH109 - a text
    except FileNotFoundError:  # the folder was removed meanwhile
        return text


EXCERPT = "excerpt"


def excerpts_of(problems: Iterable[ToolError]) -> dict[str, str]:
    """The excerpts of problems (a line of a file with a caret below it) by their messages."""
    found = {problem.message: problem.details.get(EXCERPT) for problem in problems}
    return {message: excerpt for message, excerpt in found.items() if isinstance(excerpt, str) and excerpt}


def indented(text: str) -> str:
    """Indent lines of a file, to print them below the message about them."""
    return "\n".join(f"      {visible(line)}" for line in text.splitlines())


COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "grey": 90}


def has_colour(stream: TextIO | None) -> bool:
    """Whether to colour output: on a terminal, unless NO_COLOR, CLICOLOR=0 or TERM=dumb are set.

    FORCE_COLOR and CLICOLOR_FORCE enable colour even without a terminal.
    """
    known = os.environ
    if known.get("NO_COLOR"):
        return False
    if any(known.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal(stream) and known.get("CLICOLOR") != "0" and known.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO | None) -> str:
    """The text in a colour, if output to the stream is coloured."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if has_colour(stream) else text


def say_json(value: object) -> None:
    """Print indented JSON, with the standard library, because it supports integers of any size."""
    _write_json(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def say_json_line(value: object) -> None:
    """Print JSON on one line, as one of several values."""
    _write_json(json.dumps(value, ensure_ascii=False, default=str))


def _write_json(text: str) -> None:
    _write(sys.stdout, visible(text) if is_terminal(sys.stdout) else text)


def say_text(text: str) -> None:
    """Print text of a tool: unchanged to a file or pipe, escaped on a terminal."""
    say(visible(text) if is_terminal(sys.stdout) else text)


def count(number: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def may_ask() -> bool:
    """Whether standard input and standard error are terminals, so that a person can answer a question."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def agrees(question: str) -> bool:
    """Ask once for yes or no; any other answer means no, and so does a missing terminal."""
    if not may_ask():
        return False
    sys.stderr.write(visible(question) + " [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in YES


@contextmanager
def log_on_stderr(*, verbose: bool = False) -> Iterator[None]:
    """Inside the block, send the log only to standard error: one line for each error, or with `verbose` everything.

    The log may hold details that results leave out, because models read those.
    """
    logger = logging.getLogger("toolcrib")
    before = logger.level, logger.handlers
    handler = logging.StreamHandler(sys.stderr) if verbose else _Unblocked(sys.stderr)
    handler.setLevel(logging.INFO if verbose else logging.ERROR)
    handler.setFormatter(_Whole("crib: %(message)s") if verbose else _OneLine())
    logger.handlers = [handler]
    if verbose:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]


@contextmanager
def show_warnings(*names: str) -> Iterator[None]:
    """Inside the block, also print warnings of these loggers, in one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: record.levelno < logging.ERROR)
    handler.setFormatter(_OneLine())
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def mention_problems(crib: Suggesting) -> None:
    """Mention that some tools could not be loaded, if so."""
    for line in problems_mentioned(crib):
        complain(line)


def problems_mentioned(crib: Suggesting) -> list[str]:
    """A line saying that some tools could not be loaded, if so."""
    number = len(crib.problems)
    return [f"not every tool could be loaded (problems: {number}); see: crib check"] if number else []


def require_project(settings: Settings) -> None:
    """Raise WrongUseError for a crib without a project, which stores nothing."""
    if settings.root is None:
        raise WrongUseError("there is no project to store it in; make one with: crib init")


def _write(stream: TextIO | None, text: str) -> None:
    # Python sets a standard stream that was closed before the start to None.
    if stream is None:
        return
    for clear in BUSY:
        clear()
    if stream is sys.stderr and sys.stdout is not None:
        # Keeps the order of both streams in a shared pipe; errors of the output are reported when the command ends.
        with suppress(OSError):
            sys.stdout.flush()
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        encoding = stream.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


class _Whole(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


# Of the text of a failure in the log.
SHOWN_CHARACTERS = 2_000


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        first, *others = record.getMessage().splitlines() or [""]
        # A Python traceback ends with the error message; an error of another language has its own summary.
        summary = getattr(record, "summary", None) or (others[-1].strip() if others else "")
        text = f"crib: {first}" + (f": {summary}" if summary else "")
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None:
            frames = traceback.extract_tb(problem.__traceback__)
            place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            text += f": {type(problem).__name__}: {problem}"[:SHOWN_CHARACTERS] + place
        # With its end of line no longer than what a pipe takes at once.
        return on_one_line(text).encode(errors="backslashreplace")[: select.PIPE_BUF - 1].decode(errors="ignore")


class _Unblocked(logging.StreamHandler["TextIO"]):
    """Drops a line that a full pipe cannot take: a client that never reads the log must not stop the server."""

    def emit(self, record: logging.LogRecord) -> None:
        state = select.poll()
        with suppress(OSError, ValueError):  # it has no descriptor, so it does not block
            state.register(self.stream.fileno(), select.POLLOUT)
            if not state.poll(0):
                return
        super().emit(record)


# The parser of command lines that need no Click.

STANDARD_INPUT = "-"
MAX_ARGUMENT_BYTES = 1_000_000


@record(kw_only=False)
class Option:
    """An option; `value` is the name of its value, empty for a flag."""

    spellings: tuple[str, ...]
    value: str
    help: str

    @property
    def name(self) -> str:
        """The key of the option in a `Line`."""
        return self.spellings[0]


PROJECT = Option(("--project", "-C"), "DIR", "The project folder; by default the nearest one with a toolcrib.toml.")
URL = Option(("--url",), "URL", "The URL of a server; its token is read from the variable CRIB_TOKEN.")
GRANT = Option(
    ("--grant",), "CAPABILITY", "Grant it to the tool for this call, NAME:CAPABILITY to another; repeatable."
)
MODE = Option(("--mode",), "MODE", "The mode of the call: text or voice.")
CONFIRM = Option(("--confirm",), "TOKEN", "Confirm the call with the token of an earlier result.")
ARGUMENTS = Option(("--args",), "JSON", "Arguments as a JSON object, @FILE that holds one, or - for standard input.")
DOCUMENT_CURE = f"""{ARGUMENTS.name} takes a JSON object such as '{{"name": "Ada"}}'"""
JSON = Option(("--json",), "", "Print JSON.")
JSON_SPELLINGS = (JSON.name, "--full")
STREAM = Option(("--stream",), "", "Print what the tool yields as it comes; with --json each event in a line.")
HELP = Option(("--help", "-h"), "", "Show this message and exit.")

RUN_OPTIONS = (
    ARGUMENTS,
    GRANT,
    Option(("--yes", "-y"), "", "Confirm the call if it needs confirmation."),
    CONFIRM,
    MODE,
    Option(("--timeout",), "SECONDS", "Time limit of the call in seconds."),
    Option(JSON_SPELLINGS, "", "Print the whole result as JSON, not only its value."),
    Option(("--raw",), "", "Print text unescaped, with control characters, even on a terminal."),
    Option(("--verbose", "-v"), "", "Show the log, with the traceback of a failure."),
    PROJECT,
    HELP,
)
CALL_OPTIONS = (*RUN_OPTIONS[:-1], STREAM, URL, HELP)
EXPLAIN_OPTIONS = (
    ARGUMENTS,
    GRANT,
    CONFIRM,
    MODE,
    Option(("--all",), "", "Show every gate, not only those that object."),
    JSON,
    PROJECT,
    URL,
    HELP,
)


@record
class Line:
    """A parsed command line: the options, and the other words."""

    options: Mapping[str, list[str]]
    words: list[str] = field(default_factory=list)

    def has(self, option: str) -> bool:
        """Whether the option was given."""
        return option in self.options

    def last(self, option: str) -> str | None:
        """The last value of the option."""
        return self.options[option][-1] if option in self.options else None

    def all(self, option: str) -> frozenset[str]:
        """Every value of the option."""
        return frozenset(self.options.get(option, ()))

    @property
    def mode(self) -> str | None:
        """The validated value of --mode."""
        mode = self.last(MODE.name)
        if mode is not None and mode not in MODES:
            raise WrongUseError(f"--mode {mode!r}: write one of {', '.join(sorted(MODES))}")
        return mode

    @property
    def seconds(self) -> float | None:
        """The validated value of --timeout."""
        text = self.last("--timeout")
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not (math.isfinite(seconds) and seconds > 0):
            raise WrongUseError(f"--timeout {text!r}: write a number of seconds greater than 0")
        return seconds


def read_line(words: Iterable[str], options: Sequence[Option]) -> Line:
    """Separate options from other words; after `--` there are no more options."""
    known = {spelling: option for option in options for spelling in option.spellings}
    found: dict[str, list[str]] = {}
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            others += rest
        elif word.startswith("-") and word != STANDARD_INPUT:
            option, value = _read_option(word, rest, known)
            found.setdefault(option.name, []).append(value)
        else:
            others.append(word)
    return Line(options=found, words=others)


def wants_help(words: Sequence[str]) -> bool:
    """Whether `--help` or `-h` is among the words before any `--`."""
    return _stands_in(words, HELP.spellings)


def _stands_in(words: Sequence[str], spellings: Iterable[str]) -> bool:
    end = words.index("--") if "--" in words else len(words)
    return any(spelling in words[:end] for spelling in spellings)


def refuse_url(words: Sequence[str], command: str) -> None:
    """Raise WrongUseError if --url is given to a command that works on local files only."""
    end = words.index("--") if "--" in words else len(words)
    if any(word.partition("=")[0] == URL.name for word in words[:end]):
        raise is_local(command)


def is_local(command: str) -> WrongUseError:
    """The error for a local command that was given a URL."""
    return WrongUseError(f"{command} works on files of this machine; leave {URL.name} out")


def read_grants(words: Iterable[str], *tools: str) -> dict[str, list[str]]:
    """Read the values of `--grant`: `CAPABILITY` is granted to the called tools, `NAME:CAPABILITY` to another one."""
    granted: dict[str, list[str]] = {}
    for word in sorted(words):
        name, _, capability = word.rpartition(":")
        for tool in (name,) if name else tools:
            granted.setdefault(tool, []).append(capability)
    return granted


def read_arguments(line: Line, pairs: Iterable[str], parameters: Mapping[str, object]) -> dict[str, object]:
    """Read the arguments of a call. A value is parsed as JSON only if the schema does not allow a string."""
    document = line.last(ARGUMENTS.name)
    arguments = {} if document is None else _read_document(document)
    for pair in pairs:
        key, value = _read_pair(pair, parameters)
        if key in arguments:
            raise WrongUseError(f"the argument {key!r} is given twice; remove one")
        arguments[key] = value
    return arguments


def _read_option(word: str, rest: Iterator[str], known: Mapping[str, Option]) -> tuple[Option, str]:
    spelling, equals, value = word.partition("=")
    option = known.get(spelling)
    if option is None:
        hint = did_you_mean(spelling, known)
        raise WrongUseError(f"there is no option {spelling}; {hint or 'see --help'} Arguments are written key=value")
    if not option.value:
        if equals:
            raise WrongUseError(f"{spelling} takes no value")
        return option, ""
    following = value if equals else next(rest, None)
    if following is None:
        raise WrongUseError(f"{spelling} needs a value: {spelling} {option.value}")
    return option, following


def _read_document(text: str) -> dict[str, object]:
    option = ARGUMENTS.name
    if text == STANDARD_INPUT or text.startswith("@"):
        text = _read_file(text.removeprefix("@"), option, cure="write @FILE or JSON")
    try:
        value = _read_json(text, option)
    except ToolError as problem:
        raise WrongUseError(f"{problem.message}; {DOCUMENT_CURE}") from problem
    if not isinstance(value, dict):
        raise WrongUseError(f"{option}: this is JSON but not an object; {DOCUMENT_CURE}")
    return value


def _read_pair(pair: str, parameters: Mapping[str, object]) -> tuple[str, object]:
    head, equals, text = pair.partition("=")
    key = head.removesuffix(":")
    if pair.startswith("{"):
        raise WrongUseError(f"{pair!r} is not an argument; give a JSON object with {ARGUMENTS.name}")
    if not equals or not key:
        raise WrongUseError(f"{pair!r} is not an argument; write key=value, key:=json or key=@file")
    if text.startswith("@"):
        text = _read_file(text[1:], key, cure=f"for a text that begins with @ write {key}:='\"@…\"'")
    if key != head:
        return key, _parse(text, key)
    return key, _by_type(text, properties_of(parameters).get(key, {}), parameters)


def _by_type(text: str, schema: Mapping[str, object], parameters: Mapping[str, object]) -> object:
    types = types_of(schema, parameters)
    if not types or "string" in types:
        return text
    try:
        return _read_json(text)
    except ToolError:
        # Keep the string: validation against the schema gives the error.
        return text


def _parse(text: str, place: str) -> object:
    try:
        return _read_json(text, place)
    except ToolError as problem:
        raise WrongUseError(problem.message) from problem


def _read_file(path: str, place: str, *, cure: str) -> str:
    try:
        data = _read_bytes(path)
    except OSError as problem:
        raise WrongUseError(f"{place}: {path!r} cannot be read ({problem.strerror}); {cure}") from problem
    if len(data) > MAX_ARGUMENT_BYTES:
        raise WrongUseError(f"{place}: {path!r} has more than {MAX_ARGUMENT_BYTES} bytes; make it smaller")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise WrongUseError(f"{place}: {path!r} is not UTF-8 text (byte {problem.start})") from problem


def _read_bytes(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_ARGUMENT_BYTES + 1)
    with open(path, "rb") as file:  # noqa: PTH123 - avoids importing pathlib
        return file.read(MAX_ARGUMENT_BYTES + 1)


def _read_json(text: str | bytes, place: str = "document") -> object:
    return read_json(text, place=place, max_bytes=MAX_ARGUMENT_BYTES)
