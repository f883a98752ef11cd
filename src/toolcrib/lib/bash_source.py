"""Split a Bash file into code, quoted text, comments, function bodies and arms of a case, and find why it cannot run."""

from __future__ import annotations

import codecs
import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import (
    MAX_PARAMETERS,
)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

MAX_FUNCTIONS = 200
# Longer lines are data; the rest of such a line is ignored.
MAX_LINE = 4_000
CASE_LETTERS = 20_000
MAX_CASE = 40_000
# Strings, comments and here-documents, which the scanner skips. The first characters decide between the alternatives.
TOKEN = re.compile(
    r"\\."
    r"|\$?'(?P<single>(?:[^'\\]++|\\.)*)(?:'|\Z)"
    r"|(?P<comment>(?:(?<=\s)|(?<=\A)|(?<=[;&|(]))\#[^\n]*+)"
    r"|<<-?[ \t]*+(?P<quote>[\"'\\]?)(?P<end>[A-Za-z_]\w*+)",
    re.DOTALL,
)
FUNCTION = re.compile(
    r"^[ \t]*+(?:function[ \t]++([\w:-]++)(?:[ \t]*+\(\))?|([\w:-]++)[ \t]*+\(\))\s*+([{(])", re.MULTILINE
)
BRACES = re.compile(r"(?<![\w$\\])[{](?=\s)|(?:^|(?<=[;\n]))[ \t]*+\}(?=[\s;|&)<>]|\Z)", re.MULTILINE)
PASSES_ALL = re.compile(
    r'(?:^|[;&|\n{(]|\bthen\b|\bdo\b|\belse\b|\bexec\b)[ \t]*+([\w:-]++)[ \t]++[^\n;|&]*?"\$@"', re.MULTILINE
)
# The patterns of an arm, or space without an arm behind it: otherwise each empty line would read on to the end of the space.
ARM = re.compile(
    r"(?:^|;;&?|;&|\bin\b)\s*+\(?((?:[\w.*?:=\"'\[\]-]++[ \t]*+\|[ \t]*+)*[\w.*?:=\"'\[\]-]++)\)|^\s++", re.MULTILINE
)
CASES = re.compile(r"(?:^|[;&|\n(]|\bthen\b|\bdo\b|\belse\b)[ \t]*+case\b[^\n]{0,200}?\bin\b|\besac\b")
SELECT = re.compile(r"(?:^|[;\n{])[ \t]*+select[ \t]++\w++[ \t]++in\b", re.MULTILINE)
# Lines that have no effect by themselves.
IDLE_LINE = re.compile(
    r"[ \t]*+(?:set[ \t]++[-+]|shopt\b|[A-Za-z_]\w*+=[^;&|$`]*+$|(?:readonly|declare|export)\b[^;&|$`]*+$)"
)
MAX_NESTING = 100
# Opening signs in code and in double quotes, each with its closing sign.
CLOSERS = {'"': '"', "`": "`", "$(": ")", "(": ")", "${": "}"}
IN_CODE = re.compile(
    r"(?P<skip>\\.|\$'(?:[^'\\]|\\.)*'|(?:(?<=[\s;&|(])|\A)\#[^\n]*|\$\#|\$\$)"
    r"|<<-?[ \t]*(?P<here>[\"'\\]?(?P<word>[A-Za-z_]\w*))|\$\(|\$\{|[\"'`()}]",
    re.DOTALL,
)
IN_DOUBLE = re.compile(r"(?P<skip>\\.)|\$\(|\$\{|[\"`]", re.DOTALL)
TAG = re.compile(r"@?[a-z_]++:|@\w+")
SHELLCHECK = re.compile(r"shellcheck\b|vim?:|-\*-|=+|-+|#+")


def describe(text: str) -> str:
    """The first sentence of the top comment, without usage and tags."""
    for line in text.split("\n")[:60]:
        stripped = line.strip()
        if stripped.startswith(("#!", "set ")) or stripped in {"", "#"}:
            continue
        if not stripped.startswith("#"):
            return ""
        words = stripped.lstrip("#").strip()
        if words and not TAG.match(words) and not SHELLCHECK.match(words) and not words.lower().startswith("usage"):
            name, dash, rest = words.partition(" - ")
            return rest.strip() if dash and " " not in name and "." in name else words
    return ""


def find_problem(text: str, body: str) -> tuple[int, str] | None:
    """Why a call of the file would fail or do nothing, with the line."""
    if (line := _open_quote(text)) is not None:
        return line, "a quote is opened here and never closed; close it"
    if found := SELECT.search(body):
        line = body.count("\n", 0, found.start()) + 1
        return line, 'select asks a person at a terminal; take the choice as an argument instead: case "$1" in …'
    commands = [line for line in body.split("\n") if line.strip() and not IDLE_LINE.match(line)]
    if not commands and FUNCTION.search(without_quotes_and_comments(text)):
        message = "it only defines functions and runs nothing; call one at its end, such as main \"$@\", or begin its name with '_'"
        return 1, message
    return None


def unreadable(code: bytes) -> tuple[int, str] | None:
    """Why Bash cannot run the file, with the line; None if it can."""
    if code.startswith(codecs.BOM_UTF8):
        text = "it begins with a byte order mark, which Bash takes for a part of the first command"
        return 1, f"{text}; remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' FILE"
    if b"\r\n" in code:
        line = code.count(b"\n", 0, code.index(b"\r\n")) + 1
        return line, "it has line ends of Windows (CRLF), which Bash takes for letters; write: sed -i 's/\\r$//' FILE"
    return None


def _open_quote(text: str) -> int | None:
    """The line of a top-level quote that is not closed; None if that is not certain."""
    stack: list[tuple[str, int]] = []
    position, size = 0, len(text)
    while position < size:
        inside = stack[-1][0] if stack else ""
        found = (IN_DOUBLE if inside == '"' else IN_CODE).search(text, position)
        if found is None:
            break
        sign, position = found[0], found.end()
        if found.lastgroup == "skip":
            continue
        if found.lastgroup == "here":
            stop = re.compile(rf"^[ \t]*{re.escape(found['word'])}[ \t]*$", re.MULTILINE).search(text, position)
            position = stop.end() if stop else size
        elif sign == "'":
            end = text.find("'", position)
            if end < 0:
                return _line(text, found.start()) if not stack else None
            position = end + 1
        elif stack and sign == stack[-1][0]:
            stack.pop()
        elif sign in CLOSERS:
            stack.append((CLOSERS[sign], found.start()))
            if len(stack) > MAX_NESTING:
                return None
    is_certain = len(stack) == 1 and stack[0][0] == '"'
    return _line(text, stack[0][1]) if is_certain else None


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def decode(code: bytes) -> str:
    """The text of the file, with long lines shortened."""
    text = code.decode("utf-8", "replace").replace("\r\n", "\n")
    return "\n".join(line[:MAX_LINE] for line in text.split("\n"))


def without_quotes_and_comments(text: str) -> str:
    """The code with single-quoted strings, comments and quoted here-documents removed; line numbers stay the same."""
    pieces: list[str] = []
    position = 0
    while (found := TOKEN.search(text, position)) is not None:
        pieces.append(text[position : found.start()])
        end = found.end()
        if found["end"] is not None:
            stop = re.compile(rf"^[ \t]*{re.escape(found['end'])}[ \t]*$", re.MULTILINE).search(text, end)
            last = stop.end() if stop else len(text)
            whole = text[found.start() : last]
            pieces.append(" <<X\n" + _blank(whole.partition("\n")[2]) if found["quote"] else whole)
            end = last
        elif found["single"] is not None or found["comment"] is not None:
            keep = "''" if found["single"] is not None else ""
            pieces.append(_blank(found[0]) if "\n" in found[0] else keep)
        else:
            pieces.append(found[0])
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _blank(text: str) -> str:
    return "\n" * text.count("\n")


def own_code(text: str) -> str:
    """The top-level code, and the bodies of functions that it calls with all of its arguments."""
    body, functions = split_functions(text)
    return include_called(body, functions)


def split_functions(text: str) -> tuple[str, dict[str, str]]:
    """The top-level code, and the bodies of the functions; line numbers stay the same."""
    functions: dict[str, str] = {}
    rest: list[str] = []
    position = 0
    while len(functions) < MAX_FUNCTIONS and (found := FUNCTION.search(text, position)) is not None:
        end = _end_of_body(text, found.end(), found[3])
        rest += [text[position : found.start()], _blank(text[found.start() : end])]
        functions[found[1] or found[2]] = text[found.end() : end]
        position = end
    rest.append(text[position:])
    return "".join(rest), functions


def include_called(body: str, functions: Mapping[str, str]) -> str:
    """The code with the bodies of functions that it calls with all its arguments."""
    included: set[str] = set()
    pieces = [body]
    for piece in pieces:
        for name in dict.fromkeys(found[1] for found in PASSES_ALL.finditer(piece)):
            if name in functions and name not in included:
                included.add(name)
                pieces.append(functions[name])
    return "\n".join(PASSES_ALL.sub(partial(_without_all, names=included), piece) for piece in pieces)


def _without_all(found: re.Match[str], names: Container[str]) -> str:
    """A call without its `"$@"`, because the code of the function replaces it."""
    return found[0].removesuffix('"$@"') if found[1] in names else found[0]


def _end_of_body(text: str, start: int, opening: str) -> int:
    if opening == "(":
        end = text.find("\n)", start)
        return len(text) if end < 0 else end + 2
    depth = 1
    for found in BRACES.finditer(text, start):
        depth += 1 if found[0].strip() == "{" else -1
        if depth == 0:
            return found.end()
    return len(text)


def arms_of(body: str, head: re.Pattern[str]) -> dict[str, str]:
    """The code of each arm of the case that the pattern finds, by the words of the arm."""
    found = head.search(body)
    if found is None:
        return {}
    return {word: arm for words, arm in arms_behind(body, found.end()) for word in words}


def arms_behind(body: str, position: int) -> list[tuple[list[str], str]]:
    """The arms of the case that begins before this position: their patterns, and their code."""
    inside = body[position : min(end_of_case(body, position), position + CASE_LETTERS)]
    found = list(islice((arm for arm in ARM.finditer(_without_inner_cases(inside)) if arm[1]), MAX_PARAMETERS))
    arms = []
    for index, arm in enumerate(found):
        words = [word.strip().strip("\"'") for word in arm[1].split("|")]
        stop = found[index + 1].start() if index + 1 < len(found) else len(inside)
        arms.append((words, inside[arm.end() : stop].rstrip().removesuffix(";;")))
    return arms


def end_of_case(body: str, position: int) -> int:
    """The position of the `esac` of a case whose `in` ends here."""
    depth = 1
    for found in CASES.finditer(body, position, position + MAX_CASE):
        depth += -1 if found[0].strip(" \t\n;") == "esac" else 1
        if depth == 0:
            return found.end() - len("esac")
    return len(body)


def _without_inner_cases(inside: str) -> str:
    """The text with nested cases replaced by spaces; all positions stay the same."""
    pieces, position = [], 0
    while (found := CASES.search(inside, position)) is not None and found[0].strip(" \t\n;") != "esac":
        end = min(end_of_case(inside, found.end()) + len("esac"), len(inside))
        pieces += [inside[position : found.start()], re.sub(r"[^\n]", " ", inside[found.start() : end])]
        position = end
    return "".join([*pieces, inside[position:]])
