"""Hide passwords, keys and tokens in configured text, and tell of a JavaScript error only its class and its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.model.tool import Handler

HIDDEN = "(hidden)"
SECRET_WORDS = frozenset({"pwd", "pass", "authorization", "auth", "cookie", "signature", "bearer"})
SECRET_ENDINGS = (
    *("password", "passwd", "passphrase", "secret", "secrets"),
    *("token", "apikey", "credential", "credentials"),
)
ANY_CLASS = "Error"

# Words of a name: parted by anything but letters and digits, or by a capital.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# What is only filled in when the tool runs is shown, and helps to find the reason of a refusal.
_FILLED_IN = re.compile(r"(?:(?:Bearer|Basic|Token) +)?(?:\$\{\w+\}|\{\w+\})")
_OPTION = re.compile(r"--?([\w-]+)")
_ASSIGNED = re.compile(r"(?<![\w-])([\w-]+)=(?!\$?\{)[^&\s]+")
# What is a secret wherever it stands: a name and password in a URL, a header's credentials, keys of well-known services.
_RECOGNISED = re.compile(
    r"(?<=://)[^/\s@]+(?=@)"
    r"|(?i:(?<=\bbearer )|(?<=\bbasic ))[\w.~+/=-]{8,}"
    r"|\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[a-z]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,500}\.[\w-]+\.[\w-]*|-----BEGIN[\s\S]*"
)
_CLASS = re.compile(r"[A-Za-z_$][\w$]{0,99}", re.ASCII)
_FRAME = re.compile(r"^\s+at (?:.*?\()?(?:async )?(\S.*):(\d+):\d+\)?$")
# What Node puts before the error itself where code cannot be read: the place, the line, and an arrow under it.
_HEADING = re.compile(r"^((?:file://)?/.+):(\d+)$")
_OURS = tuple(f"/toolcrib/infra/sandbox/child/{name}.cjs" for name in ("handler", "modules"))
_LINE_LETTERS = 1_000
_NAMED = re.compile(r"^[\w$.]+(?: \[\w+\])?: ")


def hide_secrets(value: object, name: str = "") -> object:
    """A JSON value without anything that is, or is named like, a secret."""
    if isinstance(value, dict):
        return {key: hide_secrets(member, name if is_secret(name) else str(key)) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [hide_secrets(item, name if is_secret(name) else _option(before)) for before, item in _pairs(value)]
    if value is None or isinstance(value, bool):
        return value
    if is_secret(name):
        return value if isinstance(value, str) and _FILLED_IN.fullmatch(value) else HIDDEN
    return _hide_in_text(value) if isinstance(value, str) else value


def is_secret(name: str) -> bool:
    """Whether what goes by this name is not for showing: `api_key`, `Authorization`, `dbPassword`, and not `max_tokens`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] == "key":
        return True
    return any(word in SECRET_WORDS or word.endswith(SECRET_ENDINGS) for word in words)


def name_class(described: Mapping[str, object]) -> str:
    """The class of an error; a name that is none is no word for a caller."""
    name = described.get("name")
    return name if isinstance(name, str) and _CLASS.fullmatch(name) else ANY_CLASS


def tell_all(described: Mapping[str, object]) -> str:
    """Everything that is known of an error, for the log: what was thrown may have no stack, or one that leaves its message out."""
    name, message, stack = (str(described.get(part) or "") for part in ("name", "message", "stack"))
    if stack and message in stack:
        return stack
    return f"{name}: {message}\n{stack}".strip(": \n")


def find_place(described: Mapping[str, object], run: Handler) -> str:
    """The file and the line of the handler where it happened, from its root; empty if that is unknown."""
    roots = {str(run.root.absolute()), str(run.root.resolve())}
    contents = run.contents
    for path, line in _places(str(described.get("stack") or "").splitlines()):
        for root in roots:
            inner = path.removeprefix(f"{root}/")
            if inner != path and inner in contents:
                return f"{inner}:{line}"
    return ""


def sum_up(lines: Sequence[str]) -> str | None:
    """A stack in one line: what went wrong and where; None if the lines are no stack of JavaScript's."""
    first = next((number for number, line in enumerate(lines) if _FRAME.match(line[:_LINE_LETTERS])), None)
    if not first:
        return None
    said = lines[0].strip()
    if _HEADING.match(said):
        said = next((line for line in reversed(lines[:first]) if _NAMED.match(line)), said)
    place = next((f" ({path}:{line})" for path, line in _places(lines) if path.startswith("/")), "")
    return f"{said}{place}"


def _hide_in_text(text: str) -> str:
    text = _ASSIGNED.sub(lambda found: f"{found[1]}={HIDDEN}" if is_secret(found[1]) else found[0], text)
    return _RECOGNISED.sub(HIDDEN, text)


def _option(before: object) -> str:
    """The name of the option that the word before is; what follows is its value."""
    found = _OPTION.fullmatch(before) if isinstance(before, str) else None
    return found[1] if found else ""


def _pairs(items: list[object] | tuple[object, ...]) -> list[tuple[object, object]]:
    return list(zip([None, *items], items, strict=False))


def _places(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files and lines that a stack names, the innermost first, without those of the worker's own code."""
    for line in (line[:_LINE_LETTERS] for line in lines):
        found = _HEADING.match(line) or _FRAME.match(line)
        if found and not found[1].endswith(_OURS):
            yield _path_of(found[1]), found[2]


def _path_of(place: str) -> str:
    if not place.startswith("file://"):
        return place
    from urllib.parse import unquote

    return unquote(place.removeprefix("file://"))
