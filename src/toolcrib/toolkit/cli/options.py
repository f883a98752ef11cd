"""Parse the words of `crib call`: options, and arguments as key=value, key:=json, key=@file or one JSON document."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.documents import read_json
from toolcrib.lib.names import did_you_mean
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import MODES
from toolcrib.toolkit.cli import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

STANDARD_INPUT = "-"
MAX_ARGUMENT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
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
GRANT = Option(("--grant",), "CAPABILITY", "Grant a capability for this call; repeatable.")
MODE = Option(("--mode",), "MODE", "The mode of the call: text or voice.")
CONFIRM = Option(("--confirm",), "TOKEN", "Confirm the call with the token of an earlier result.")
ARGUMENTS = Option(("--args",), "JSON", "Arguments as a JSON object, @FILE that holds one, or - for standard input.")
DOCUMENT_CURE = f"""{ARGUMENTS.name} takes a JSON object such as '{{"name": "Ada"}}'"""
JSON = Option(("--json",), "", "Print JSON.")
HELP = Option(("--help", "-h"), "", "Show this message and exit.")

RUN_OPTIONS = (
    ARGUMENTS,
    GRANT,
    Option(("--yes", "-y"), "", "Confirm the call if it needs confirmation."),
    CONFIRM,
    MODE,
    Option(("--timeout",), "SECONDS", "Time limit of the call in seconds."),
    Option((JSON.name, "--full"), "", "Print the whole result as JSON, not only its value."),
    Option(("--raw",), "", "Print text unescaped, with control characters, even on a terminal."),
    Option(("--verbose", "-v"), "", "Show the log, with the traceback of a failure."),
    PROJECT,
    HELP,
)
CALL_OPTIONS = (*RUN_OPTIONS[:-1], URL, HELP)
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


@dataclass(frozen=True, kw_only=True, slots=True)
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
        """The value of --mode."""
        mode = self.last(MODE.name)
        if mode is not None and mode not in MODES:
            raise WrongUseError(f"--mode {mode!r}: write one of {', '.join(sorted(MODES))}")
        return mode

    @property
    def seconds(self) -> float | None:
        """The value of --timeout."""
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
    """Whether `--help` or `-h` stands before any `--`."""
    end = words.index("--") if "--" in words else len(words)
    return any(spelling in words[:end] for spelling in HELP.spellings)


def refuse_url(words: Sequence[str], command: str) -> None:
    """Refuse --url for a command that works on local files only."""
    end = words.index("--") if "--" in words else len(words)
    if any(word.partition("=")[0] == URL.name for word in words[:end]):
        raise is_local(command)


def is_local(command: str) -> WrongUseError:
    """The error of a local command that was given a URL."""
    return WrongUseError(f"{command} works on files of this machine; leave {URL.name} out")


def read_arguments(line: Line, pairs: Iterable[str], parameters: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a call. A value is parsed as JSON only if the schema does not allow a string."""
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
    with open(path, "rb") as file:  # noqa: PTH123 - a path of the user's own, read as far as needed
        return file.read(MAX_ARGUMENT_BYTES + 1)


def _read_json(text: str | bytes, place: str = "document") -> object:
    return read_json(text, place=place, max_bytes=MAX_ARGUMENT_BYTES)


# The types of arguments, as far as a command line needs them.

_DEEPEST = 8


def properties_of(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The declared properties; what is not written as JSON Schema wants it is left out."""
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: part if isinstance(part, dict) else {} for name, part in found.items()}


def types_of(schema: Mapping[str, object], root: Mapping[str, object]) -> frozenset[str]:
    """The JSON types that a schema declares, here or behind references and alternatives; none if it declares none."""
    return frozenset(_types(schema, root, _DEEPEST))


def _types(schema: Mapping[str, object], root: Mapping[str, object], depth: int) -> Iterator[str]:
    if depth == 0:
        return
    declared = schema.get("type")
    yield from [declared] if isinstance(declared, str) else _texts(declared)
    for part in (*_parts(schema.get("anyOf")), *_parts(schema.get("oneOf")), *_target(schema.get("$ref"), root)):
        yield from _types(part, root, depth - 1)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _parts(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _target(reference: object, root: Mapping[str, object]) -> list[dict[str, object]]:
    """What a reference into the schema's own definitions means."""
    definitions = root.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return []
    return _parts([definitions.get(reference.removeprefix("#/$defs/"))])
