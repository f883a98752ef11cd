"""What a command runs in its turn: `sudo x`, `sh -c '…'`, `find -exec x`, `… | sh`."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.lib.shell.words import GLOB, Command, Word, plain, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# A program that lists what is there gives as much as a glob does, unless its words hide something.
LISTS_FILES = re.compile(
    r"\s*(?:find(?!.*-f?printf)|fd|ls|(?:rg|grep) -[a-zA-Z]*l|git ls-files)\b[^|;&`$()<>%\\]*\|\s*"
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Code(NamedTuple):
    """A word that is shell code in its turn."""

    word: Word


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrapper:
    """How to find the command among the words of a program that runs another.

    `letters` are its short options that take a value, `options` the long ones; `operands` come before the command.
    """

    letters: str = ""
    options: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False


def _long(*names: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in names)


WRAPPERS = {
    "!": Wrapper(assignments=True),
    "builtin": Wrapper(),
    "busybox": Wrapper(),
    "chroot": Wrapper(operands=1),
    "chrt": Wrapper(letters="TPD", operands=1),
    "command": Wrapper(),
    "coproc": Wrapper(assignments=True),
    "doas": Wrapper(letters="uCa"),
    "exec": Wrapper(letters="a"),
    "fakeroot": Wrapper(letters="lsib", options=_long("lib", "faked")),
    "flock": Wrapper(letters="wE", options=_long("wait", "timeout", "conflict-exit-code"), operands=1),
    "ionice": Wrapper(letters="cnpPu", options=_long("class", "classdata")),
    "ltrace": Wrapper(letters="aAeFlnopsux"),
    "nice": Wrapper(letters="n", options=_long("adjustment")),
    "nohup": Wrapper(),
    "nsenter": Wrapper(letters="tSG", options=_long("target", "setuid", "setgid")),
    "pkexec": Wrapper(options=_long("user")),
    "rlwrap": Wrapper(letters="bCDfHlOpPqsStz"),
    "runuser": Wrapper(letters="ugGsw", options=_long("user", "group", "supp-group", "shell")),
    "setarch": Wrapper(operands=1),
    "setpriv": Wrapper(options=_long("reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set")),
    "setsid": Wrapper(),
    "stdbuf": Wrapper(letters="ioe", options=_long("input", "output", "error")),
    "strace": Wrapper(letters="abeEIoOpPsSuUX"),
    "sudo": Wrapper(
        letters="ughpCrtTUDRaBc",
        options=_long("user", "group", "host", "prompt", "close-from", "role", "type", "other-user", "chdir", "chroot"),
        assignments=True,
    ),
    "systemd-run": Wrapper(letters="HMutpE", options=_long("unit", "property", "uid", "gid", "slice", "setenv")),
    "taskset": Wrapper(operands=1),
    "time": Wrapper(letters="fo", options=_long("format", "output"), assignments=True),
    "timeout": Wrapper(letters="sk", options=_long("signal", "kill-after"), operands=1),
    "toybox": Wrapper(),
    "unbuffer": Wrapper(),
    "unshare": Wrapper(letters="RwSGlo", options=_long("root", "wd", "setuid", "setgid")),
    "valgrind": Wrapper(),
    "xvfb-run": Wrapper(letters="eEfnopsw", options=_long("error-file", "auth-file", "server-num", "server-args")),
}
ENV = Wrapper(letters="uC", options=_long("unset", "chdir"), assignments=True)
WATCH = Wrapper(letters="nq", options=_long("interval", "equexit"))
XARGS = Wrapper(
    letters="adEILnPs",
    options=_long("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"),
)
PARALLEL = Wrapper(
    letters="aCdEIjLnNPSsU",
    options=_long("arg-file", "colsep", "delimiter", "jobs", "max-args", "max-replace-args", "max-procs", "sshlogin"),
)

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish"})
SHELL_VALUES = _long("rcfile", "init-file")
INTERPRETERS = frozenset({"python", "python2", "python3", "perl", "ruby", "node", "php", "lua", "at", "batch"})
STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
EXEC_TESTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
CODE_OPTIONS = {"su": _long("command", "session-command"), "runuser": _long("command"), "script": _long("command")}


def unfold(command: Command) -> Iterator[Command | Code]:
    """The commands and the code that this command runs, as far as its words tell."""
    name = command.name
    if name in SPECIAL:
        yield from SPECIAL[name](command)
    elif name in SHELLS:
        yield from _shell(command)
    elif name in INTERPRETERS or name.startswith("python3."):
        yield from _interpreter(command)
    if name in CODE_OPTIONS or name == "flock":
        yield from _code_option(command, CODE_OPTIONS.get(name, _long("command")))
    if name in WRAPPERS and not _only_asks(command):
        yield from (replace(command, words=words) for words in _wrapped(command.words, WRAPPERS[name]))


def _wrapped(words: Sequence[Word], wrapper: Wrapper) -> Iterator[tuple[Word, ...]]:
    """The words of the wrapped command; both readings where an unknown option may or may not take the next word."""
    position, may_be_value = 1, False
    while position < len(words):
        text = words[position].text
        if text == "--":
            position += 1
            break
        option = text.startswith("-") and not words[position].computed
        if option:
            may_be_value = text.startswith("--") and "=" not in text and text not in wrapper.options
            position += 1 + _takes_next(text, wrapper)
        elif wrapper.assignments and ASSIGNMENT.match(text):
            position += 1
        elif may_be_value:
            yield tuple(words[position + wrapper.operands :])
            position, may_be_value = position + 1, False
        else:
            break
    rest = tuple(words[position + wrapper.operands :])
    if rest:
        yield rest


def _takes_next(option: str, wrapper: Wrapper) -> bool:
    """Whether the value of an option stands in the next word."""
    if option.startswith("--"):
        return option in wrapper.options
    valued = [position for position, letter in enumerate(option) if position and letter in wrapper.letters]
    return bool(valued) and valued[0] == len(option) - 1


def _only_asks(command: Command) -> bool:
    """Whether it is `command -v name`, which runs nothing."""
    options = [word.text for word in command.arguments[:1]]
    return command.name == "command" and any(re.fullmatch(r"-p?[vV]+", option) for option in options)


def _env(command: Command) -> Iterator[Command | Code]:
    """`env name=value command`, or `env -S 'words'`, which splits its value into words as a shell would."""
    words = command.arguments
    for position, word in enumerate(words):
        match = re.match(r"(?:-[0iv]*S|--split-string(?:=|$))", word.text)
        if match is None:
            continue
        rest = words[position + 1 :]
        value = word.text[match.end() :]
        parts = ([plain(value)] if value else []) + list(rest)
        text = " ".join([parts[0].text, *(shlex.quote(part.text) for part in parts[1:])]) if parts else ""
        computed = word.computed or any(part.computed for part in parts)
        yield Code(Word(text=text, shape=text, computed=computed))
        return
    yield from (replace(command, words=words) for words in _wrapped(command.words, ENV))


def _shell(command: Command) -> Iterator[Command | Code]:
    """`sh -c 'code'`, `sh file`, or code from standard input."""
    runs_code, reads_input, position = False, False, 0
    words = command.arguments
    while position < len(words) and words[position].text[:1] in {"-", "+"} and len(words[position].text) > 1:
        text = words[position].text
        if text == "--":
            position += 1
            break
        cluster = "" if text.startswith("--") else text[1:]
        runs_code = runs_code or "c" in cluster or text == "--command"
        reads_input = reads_input or "s" in cluster
        position += 2 if cluster[-1:] in {"o", "O"} or text in SHELL_VALUES else 1
    operands = words[position:]
    if runs_code and operands:
        yield Code(operands[0])
    elif operands and not reads_input and operands[0].text not in STANDARD_INPUT:
        yield from _file(operands[0])
    else:
        yield from _standard_input(command, is_shell=True)


def _interpreter(command: Command) -> Iterator[Command | Code]:
    """An interpreter without a program of its own takes it from standard input."""
    own = [word for word in command.arguments if word.text not in STANDARD_INPUT]
    runs_own = any(not word.text.startswith("-") or re.match(r"-\w*[cemr]", word.text) for word in own)
    if not runs_own or command.name in {"at", "batch"}:
        yield from _standard_input(command, is_shell=command.name in {"at", "batch"})


def _file(word: Word) -> Iterator[Command | Code]:
    """A file of code cannot be seen; only one that is made on the spot is worth a word."""
    if word.computed:
        yield Command(words=(unknown(source=word.source),))


def _standard_input(command: Command, *, is_shell: bool) -> Iterator[Command | Code]:
    given = [found for found in command.redirections if found.operator in {"<", "<<", "<<-", "<<<"}]
    for redirection in given:
        if redirection.operator != "<" and is_shell:
            yield Code(redirection.target)
        elif redirection.operator == "<":
            yield from _file(redirection.target)
    if command.upstream and not given:
        yield Command(words=(unknown(source=command.upstream),))


def _eval(command: Command) -> Iterator[Command | Code]:
    yield Code(_joined(command.arguments))


def _source(command: Command) -> Iterator[Command | Code]:
    for word in command.arguments[:1]:
        if word.text in STANDARD_INPUT:
            yield from _standard_input(command, is_shell=True)
        yield from _file(word)


def _trap(command: Command) -> Iterator[Command | Code]:
    for word in [word for word in command.arguments if not word.text.startswith("-")][:1]:
        yield Code(word)


def _alias(command: Command) -> Iterator[Command | Code]:
    for word in command.arguments:
        _, equals, value = word.text.partition("=")
        if equals:
            yield Code(replace(word, text=value))


def _find(command: Command) -> Iterator[Command | Code]:
    words = command.arguments
    for position, word in enumerate(words):
        if word.text in EXEC_TESTS:
            ends = (end for end in range(position + 1, len(words)) if words[end].text in {";", "+"})
            yield replace(command, words=words[position + 1 : next(ends, len(words))])


def _xargs(command: Command) -> Iterator[Command | Code]:
    """The command with what it will be given: words from standard input, at the end or in place of a mark."""
    given = unknown(source=command.upstream)
    if LISTS_FILES.fullmatch(command.upstream):
        given = replace(given, guesses=(GLOB,))
    mark = _replaced_mark(command.arguments)
    for words in _wrapped(command.words, XARGS):
        if mark is None:
            yield replace(command, words=(*words, given))
        else:
            yield replace(command, words=tuple(_filled(word, mark, given) for word in words))


def _replaced_mark(words: Sequence[Word]) -> str | None:
    for position, word in enumerate(words):
        if word.text in {"-I", "-J"} and position + 1 < len(words):
            return words[position + 1].text
        if word.text in {"-i", "--replace"}:
            return "{}"
        match = re.match(r"-[IiJ](.+)|--replace=(.+)", word.text)
        if match:
            return match[1] or match[2]
    return None


def _filled(word: Word, mark: str, given: Word) -> Word:
    if mark not in word.text:
        return word
    if word.text == mark:
        return replace(given, text=word.text)
    return replace(word, shape=word.shape.replace(mark, given.shape), computed=True, source=given.source, guesses=())


def _parallel(command: Command) -> Iterator[Command | Code]:
    """`parallel code ::: values`; without code the values, or the lines of standard input, are the code."""
    words = command.words
    marks = [position for position, word in enumerate(words) if re.fullmatch(r":::+\+?", word.text)]
    head, values = (words[: marks[0]], words[marks[0] + 1 :]) if marks else (words, ())
    given = values or (unknown(source=command.upstream),)
    wrapped = list(_wrapped(head, PARALLEL))
    for parts in wrapped:
        yield Code(_joined(parts))
        yield from (replace(command, words=(*parts, value)) for value in given)
    if not wrapped:
        yield from (Code(value) for value in given)


def _watch(command: Command) -> Iterator[Command | Code]:
    for parts in _wrapped(command.words, WATCH):
        yield Code(_joined(parts))


def _code_option(command: Command, options: frozenset[str]) -> Iterator[Command | Code]:
    """`su -c 'code'`."""
    words = command.arguments
    for position, word in enumerate(words):
        option, equals, value = word.text.partition("=")
        if option in options and equals:
            yield Code(replace(word, text=value))
        elif (option in options or re.fullmatch(r"-\w*c", option)) and position + 1 < len(words):
            yield Code(words[position + 1])


def _joined(words: Sequence[Word]) -> Word:
    return Word(
        text=" ".join(word.text for word in words),
        shape=" ".join(word.shape for word in words),
        computed=any(word.computed for word in words),
        source=" ".join(word.source for word in words if word.source),
    )


SPECIAL: dict[str, Callable[[Command], Iterator[Command | Code]]] = {
    "env": _env,
    "eval": _eval,
    ".": _source,
    "source": _source,
    "trap": _trap,
    "alias": _alias,
    "find": _find,
    "xargs": _xargs,
    "parallel": _parallel,
    "watch": _watch,
}
