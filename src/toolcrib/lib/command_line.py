"""The command line of a program (options, positional arguments, standard input), and the words of one call.

`bash_program`, `python_program` and `javascript_program` derive a `CommandLine` from the syntax of a file. It is stored as
plain data in the config of a tool under `command_line`, from which `command_words` builds the words of a call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.command_arguments import as_text
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMMAND_LINE = "command_line"
# A model could not use a command line with more parameters.
MAX_PARAMETERS = 200
# How much can be written to standard input at once without a reader.
MAX_STDIN_BYTES = 1_000_000
# The name of the argument for standard input, if a program reads it.
STDIN = "stdin"
END_OF_OPTIONS = "--"

# How a positional value that begins with a dash is passed: like any other word, or after `--`.
PLAIN, AFTER_END = "plain", "end"
# How an option or a word takes a value.
VALUE, FLAG, COUNT, REPEAT, SPREAD, ANY = "value", "flag", "count", "repeat", "spread", "any"

# Words of a command line are text; a number is passed as its digits.
WORD: Mapping[str, object] = {"type": ["string", "number"]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One argument of a program.

    `option` is its spelling (`--limit`), empty for a positional argument; `off` is the option that means false. `takes` is
    VALUE, FLAG (no value), COUNT (a flag that is repeated), REPEAT (the option is repeated for each value), SPREAD (several
    words) or ANY. A flag that can only mean false has the option `--`, which is never written. A `glued` option accepts
    `--limit=3`; one that is spelled `--limit=` accepts only this form.
    """

    name: str
    schema: Mapping[str, object] = field(default_factory=lambda: dict(WORD))
    option: str = ""
    off: str = ""
    takes: str = VALUE
    required: bool = False
    glued: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """The command line of a program, or of one of its sub-commands, whose words come `before`.

    `stdin` is the name of the argument for standard input, empty if the program does not read it; `needs_stdin` says that it
    is required. `problems` and `warnings` are pairs of a line number and a text.
    """

    summary: str = ""
    before: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    stdin: str = ""
    needs_stdin: bool = True
    dashes: str = AFTER_END
    actions: Mapping[str, CommandLine] = field(default_factory=dict)
    problems: tuple[tuple[int, str], ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arguments, standard input last."""
        return (*(parameter.name for parameter in self.parameters), *([self.stdin] if self.stdin else []))

    def to_schema(self) -> dict[str, object]:
        """A closed schema of the arguments."""
        properties: dict[str, object] = {one.name: dict(one.schema) for one in self.parameters}
        required = [one.name for one in self.parameters if one.required]
        if self.stdin:
            properties[self.stdin] = {"type": "string", "description": "The standard input of the program."}
            required += [self.stdin] if self.needs_stdin else []
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def to_config(self) -> dict[str, object]:
        """The command line as plain data, for `command_words`."""
        described = [
            {"name": one.name, "option": one.option, "off": one.off, "takes": one.takes, "glued": one.glued}
            for one in self.parameters
        ]
        return {"before": [*self.before], "parameters": described, "stdin": self.stdin, "dashes": self.dashes}


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The arguments of a process: its words, and its standard input or None."""

    words: tuple[str, ...]
    stdin: str | None = None


def command_words(config: Mapping[str, object], arguments: Mapping[str, object], action: str = "") -> Words:
    """The words of a call: the sub-command, the options, and then the positional arguments."""
    words = [str(word) for word in _list(config.get("before"))] or ([action] if action else [])
    entries = [entry for entry in _list(config.get("parameters")) if isinstance(entry, dict)]
    stdin = str(config.get("stdin") or "")
    known = {str(entry.get("name")) for entry in entries} | {stdin}
    if unknown := [name for name in arguments if name not in known]:
        message = f"the program takes no argument {unknown[0][:80]!r}; give {', '.join(sorted(known - {''})) or 'none'}"
        raise ToolError(Kind.VALIDATION, message)
    for entry in entries:
        if entry.get("option"):
            words += _option(entry, arguments.get(str(entry.get("name"))))
    places = [entry for entry in entries if not entry.get("option")]
    words += _in_places(places, arguments, dashes=str(config.get("dashes")))
    return Words(words=tuple(words), stdin=_stdin(arguments, stdin))


def check_stdin(text: str) -> str:
    """Refuse a text that is too long for standard input."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_STDIN_BYTES:
        message = f"standard input takes {MAX_STDIN_BYTES:,} bytes; write what is longer to a file and pass its path"
        raise ToolError(Kind.VALIDATION, message)
    return text


def _stdin(arguments: Mapping[str, object], name: str) -> str | None:
    value = arguments.get(name) if name else None
    return None if value is None else check_stdin(as_text(value))


def _option(entry: Mapping[str, object], value: object) -> list[str]:  # noqa: PLR0911 - one case for each kind of option
    option, takes = str(entry["option"]), entry.get("takes")
    if takes == FLAG:
        off = str(entry.get("off") or "")
        on = [option] if option != END_OF_OPTIONS else []
        return on if value is True else [off] if value is False and off else []
    if takes == ANY and isinstance(value, bool):
        return [option] if value else []
    if takes == COUNT:
        return [option] * value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else []
    if value is None:
        return []
    if takes == REPEAT or (takes == ANY and isinstance(value, list)):
        return [word for item in _items(value) for word in _spell(entry, item)]
    if takes == SPREAD:
        texts = [as_text(item) for item in _items(value)]
        _refuse_dashes(entry, texts)
        return [option, *texts]
    return _spell(entry, value)


def _spell(entry: Mapping[str, object], value: object) -> list[str]:
    option, text = str(entry["option"]), as_text(value)
    if option.endswith("="):
        return [f"{option}{text}"]
    if not text.startswith("-") or not entry.get("glued"):
        return [option, text]
    return [f"{option}={text}"] if option.startswith("--") else [f"{option}{text}"]


def _in_places(places: list[dict[str, object]], arguments: Mapping[str, object], *, dashes: str) -> list[str]:
    words: list[str] = []
    skipped = ""
    for entry in places:
        name = str(entry.get("name"))
        value = arguments.get(name)
        if value is None:
            skipped = skipped or name
            continue
        given = [as_text(item) for item in _items(value)] if entry.get("takes") == SPREAD else [as_text(value)]
        if skipped and given:
            message = f"{name} is a positional argument after {skipped}; give {skipped} too, or leave out both"
            raise ToolError(Kind.VALIDATION, message)
        if dashes != PLAIN and END_OF_OPTIONS not in words and any(text.startswith("-") for text in given):
            words.append(END_OF_OPTIONS)
        words += given
    return words


def _refuse_dashes(entry: Mapping[str, object], texts: Iterable[str]) -> None:
    dashed = next((text for text in texts if text.startswith("-")), None)
    if dashed is not None:
        message = f"{entry.get('name')}: {dashed[:80]!r} would be taken for an option; give another value"
        raise ToolError(Kind.VALIDATION, message)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
