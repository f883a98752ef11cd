"""Read from a Bash file how it takes its arguments: `$1`, `getopts`, loops over options, `"$@"`, standard input.

The file is cut into code, quoted text, comments and function bodies; nothing is expanded or run. What a function reads counts
only if the file calls it with `"$@"`. Names come from the usage line, or from the variables that the arguments are put into.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import (
    AFTER_END,
    FLAG,
    MAX_PARAMETERS,
    PLAIN,
    SPREAD,
    WORD,
    CommandLine,
    Parameter,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

STDIN = "stdin"
REST = "args"
INTEGER = {"type": "integer"}
# More places are no interface, and a file of nothing but digits must not cost us.
MAX_PLACES = 40
MAX_FUNCTIONS = 200
MAX_LOOPS = 20
MAX_INCLUDED = 10
# A case with fewer commands is a check of a value.
LEAST_COMMANDS = 2
COMMAND = "command"
# Longer lines are data; the rest of one is not looked at.
MAX_LINE = 4_000
USAGE_LETTERS = 32_000
CASE_LETTERS = 20_000
MAX_CASE = 40_000

# What the scanner passes over: strings, comments, here-documents. Every alternative is bounded by its first letters.
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
PLACE = re.compile(r"\$(?:\{(?P<braced>[1-9]\d?)(?P<how>:?[-?=+][^}\n]*+|[#%/,^:][^}\n]*+)?\}|(?P<digit>[1-9]))")
ALL = re.compile(r"\$(?:[@*]|\{[@*][^}\n]*+\})")
SLICE = re.compile(r"\$\{[@*]:([1-9]\d?)\}")
ASSIGNED = re.compile(
    r"(?:^|[\s;&|{(])([A-Za-z_]\w*+)=\"?\$(?:\{([1-9]\d?)(?::?[-?=]([^}\n]*+))?\}|([1-9]))",
    re.MULTILINE,
)
ARITHMETIC = re.compile(r"\$?\(\(((?:[^()]++|\([^()]*+\))*)\)\)")
COUNTED = re.compile(r"\$\{?#\}?[\"']?[ \t]*+(-ne|-lt|-eq|!=|==?|<|-le|-gt|-ge|>)[ \t]*+[\"']?(\d{1,2})")
TESTED = re.compile(r"-([zn])[ \t]++\"?\$\{?([1-9])\b")
SHIFT = re.compile(r"(?:^|[;&|\n{(]|\bthen\b|\bdo\b)[ \t]*+shift\b(?:[ \t]++(\d{1,2}))?", re.MULTILINE)
GETOPTS = re.compile(r"\bgetopts[ \t]++[\"']?([:\w]++)[\"']?[ \t]++\"?([A-Za-z_]\w*+)")
OPTION_LOOP = re.compile(
    r"\bcase[ \t]++\"?\$(?:\{1(?::-)?\}|1)\"?[ \t]++in\b|\bcase[ \t]++\"?\$\{?([A-Za-z_]\w*+)\}?\"?[ \t]++in\b"
)
ARM = re.compile(
    r"(?:^|;;&?|;&|\bin\b)\s*+\(?((?:[\w.*?:=\"'\[\]-]++[ \t]*+\|[ \t]*+)*[\w.*?:=\"'\[\]-]++)\)", re.MULTILINE
)
CASES = re.compile(r"(?:^|[;&|\n(]|\bthen\b|\bdo\b|\belse\b)[ \t]*+case\b[^\n]{0,200}?\bin\b|\besac\b")
DISPATCH = re.compile(
    r"(?:^|[;&|\n(])[ \t]*+case[ \t]++\"?\$(?:\{1(?::?-[^}\n]*+)?\}|1|\{?([A-Za-z_]\w*+)(?::?-[^}\n]*+)?\}?)\"?[ \t]++in\b"
)
SETS = re.compile(r"(?:^|[;&|\s{(])([A-Za-z_]\w*+)(?:\+?=)(\(?)[\"']?(\$\{?OPTARG|\$\{?2\b|\$\{?1#|\$\{[A-Za-z_]\w*#|)")
SETS_TRUE = re.compile(r"=[\"']?(?:true|1|yes|on|y)\b[\"']?|\(\(", re.IGNORECASE)
USAGE = re.compile(
    r"\busage[ \t]*+:?[ \t]*+(?:\n[ \t]*+#?[ \t]*+)?(?:\$0|\$\{0[^}]*+\}|\$\(basename[^)]*+\)|[\w./${}-]++)((?:[ \t]++[^\n\"';]++)?)",
    re.IGNORECASE,
)
USAGE_WORD = re.compile(
    r"(\[?)[<{]?([A-Za-z][\w-]*+)[>}]?(\.\.\.)?(\]?)(\.\.\.)?|(\[?)[<{]([^<>{}\[\]\n]{1,40})[>}](\.\.\.)?(\]?)"
)
READS_INPUT = (
    re.compile(r"\$\([ \t]*+(?:cat|<[ \t]*+/dev/stdin)(?:[ \t]++-)?[ \t]*+\)"),
    re.compile(r"(?:^|[;&\n{(]|\bthen\b|\bdo\b)[ \t]*+cat(?:[ \t]++-)?[ \t]*+(?:$|[|;>\n])", re.MULTILINE),
    re.compile(r"/dev/stdin"),
    re.compile(
        r"(?:^|[;\n{])[ \t]*+(?:IFS=[^\s;]*+[ \t]++)?(?:read|mapfile|readarray)\b(?![^\n]*<)[^\n|]*+$", re.MULTILINE
    ),
)
INSTEAD_OF_FILE = re.compile(r"\$\{[1-9]:?-(?:/dev/stdin|-)\}")
READ_LOOP = re.compile(r"\bwhile\b[^\n;]{0,200}?\bread\b")
# Filters that read their standard input when no file is named.
FILTER = re.compile(
    r"\A\s*+(?:set[ \t]++-[^\n]*+\s++)*(?:exec[ \t]++)?"
    r"(?:jq|sort|uniq|wc|tr|rev|tac|nl|head|tail|base64|sha\d+sum|md5sum|sed|awk|grep)\b([^\n]*+)"
)
# The same at the beginning of any command; `(?<!…)` is no place for a pipe.
FILTERS = re.compile(
    r"(?:^|[;&\n{(]|\bthen\b|\bdo\b|\belse\b)[ \t]*+"
    r"(jq|sort|uniq|wc|tr|rev|tac|nl|head|tail|base64|sha\d+sum|md5sum|sed|awk|grep|cut|fold)\b([^\n;|&)]*+)",
    re.MULTILINE,
)
NEED_PROGRAM = frozenset({"jq", "sed", "awk", "grep"})
# The options of each that have a value behind them.
FILTER_VALUES = {
    "head": "nc",
    "tail": "nc",
    "cut": "dfcb",
    "sort": "tkSoT",
    "fold": "w",
    "uniq": "fsw",
    "base64": "w",
    "nl": "bsvw",
    "grep": "emABCf",
    "sed": "ef",
    "awk": "Fvf",
    "jq": "f",
}
CALLS = re.compile(
    r"(?:^|[;&\n{(!]|\bthen\b|\bdo\b|\belse\b|\bif\b|\bwhile\b)[ \t]*+([\w:-]++)(?=[^\n;|&<(]{0,400}(?:$|[;|&)]))",
    re.MULTILINE,
)
# A line that goes on in the next one.
JOINED = re.compile(r"(?<=\|)[ \t]*+\n[ \t]*+|\\\n[ \t]*+")
SELECT = re.compile(r"(?:^|[;\n{])[ \t]*+select[ \t]++\w++[ \t]++in\b", re.MULTILINE)
# Lines that do nothing by themselves.
IDLE_LINE = re.compile(
    r"[ \t]*+(?:set[ \t]++[-+]|shopt\b|[A-Za-z_]\w*+=[^;&|$`]*+$|(?:readonly|declare|export)\b[^;&|$`]*+$)"
)
SHOWS_HELP = re.compile(r"\s*+(?:print_|show_)?(?:usage|help)\b[^\n;]*+;?(?:\s*+exit\b[^\n;]*+;?)?\s*+")
MAX_NESTING = 100
# What opens and closes in code and between double quotes; each sign with what closes it.
CLOSERS = {'"': '"', "`": "`", "$(": ")", "(": ")", "${": "}"}
IN_CODE = re.compile(
    r"(?P<skip>\\.|\$'(?:[^'\\]|\\.)*'|(?:(?<=[\s;&|(])|\A)\#[^\n]*|\$\#|\$\$)"
    r"|<<-?[ \t]*(?P<here>[\"'\\]?(?P<word>[A-Za-z_]\w*))|\$\(|\$\{|[\"'`()}]",
    re.DOTALL,
)
IN_DOUBLE = re.compile(r"(?P<skip>\\.)|\$\(|\$\{|[\"`]", re.DOTALL)
HELP = frozenset({"h", "help", "?", ":", "*", "-h", "--help", "--", "-*", "--*", "-?", "\\?"})
TAG = re.compile(r"@?[a-z_]++:|@\w+")
SHELLCHECK = re.compile(r"shellcheck\b|vim?:|-\*-|=+|-+|#+")


@dataclass(slots=True)
class _Place:
    """What is known of one place: `$1` and so on."""

    name: str = ""
    default: str | None = None
    optional: bool = False
    required: bool = False
    integer: bool = False
    line: int = 1


def read_bash_program(code: bytes) -> CommandLine:
    """How the file takes its arguments; `problems` say what could not be told."""
    if problem := _unreadable(code):
        return CommandLine(problems=(problem,))
    text = _decode(code)
    whole = _without_quotes_and_comments(text)
    body = _own_code(whole)
    usage = _usage(text)
    summary = describe(text)
    if problem := _find_problem(text, body):
        return CommandLine(summary=summary, problems=(problem,))
    if actions := _sub_commands(whole, text):
        return CommandLine(summary=summary, actions=actions)
    return _with_inner_input(_read_body(body, text, usage, summary), body, _apart(whole)[1])


def _read_body(body: str, text: str, usage: list[Parameter], summary: str) -> CommandLine:
    if found := GETOPTS.search(body):
        return _with_getopts(found, body, text, usage, summary)
    loop = _option_loop(body)
    if loop is not None:
        return _with_loop(loop, body, text, usage, summary)
    return _with_places(body, usage, summary)


def uses_odd_places(code: bytes) -> bool:
    """Whether the file takes `$1`, `$3` … as values, where a call with `--name value` would put the names."""
    body = _own_code(_without_quotes_and_comments(_decode(code)))
    if GETOPTS.search(body) or _option_loop(body) is not None or SHIFT.search(body):
        return False
    return any(number % 2 for number in _places(body, 0))


def describe(text: str) -> str:
    """The first sentence of the comment at the top, without usage and tags."""
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


def _find_problem(text: str, body: str) -> tuple[int, str] | None:
    """Why a call of the file would fail or come to nothing, with the line."""
    if (line := _open_quote(text)) is not None:
        return line, "a quote is opened here and never closed; close it"
    if found := SELECT.search(body):
        line = body.count("\n", 0, found.start()) + 1
        return line, 'select asks a person at a terminal; take the choice as an argument instead: case "$1" in …'
    commands = [line for line in body.split("\n") if line.strip() and not IDLE_LINE.match(line)]
    if not commands and FUNCTION.search(_without_quotes_and_comments(text)):
        message = "it only defines functions and runs nothing; call one at its end, such as main \"$@\", or begin its name with '_'"
        return 1, message
    return None


def _unreadable(code: bytes) -> tuple[int, str] | None:
    """Why Bash itself could not run the file."""
    if code.startswith(codecs.BOM_UTF8):
        text = "it begins with a byte order mark, which Bash takes for a part of the first command"
        return 1, f"{text}; remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' FILE"
    if b"\r\n" in code:
        line = code.count(b"\n", 0, code.index(b"\r\n")) + 1
        return line, "it has line ends of Windows (CRLF), which Bash takes for letters; write: sed -i 's/\\r$//' FILE"
    return None


def _open_quote(text: str) -> int | None:
    """The line of a quote at the top that no other closes; None where that is not certain."""
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


def _decode(code: bytes) -> str:
    text = code.decode("utf-8", "replace").replace("\r\n", "\n")
    return "\n".join(line[:MAX_LINE] for line in text.split("\n"))


def _without_quotes_and_comments(text: str) -> str:
    """The code with single-quoted strings, comments and quoted here-documents blanked out; its lines stay in place."""
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


def _own_code(text: str) -> str:
    """The code at the top, and the bodies of functions that it calls with all of its arguments."""
    body, functions = _apart(text)
    return _include(body, functions)


def _apart(text: str) -> tuple[str, dict[str, str]]:
    """The code at the top, and the bodies of the functions; lines stay in place."""
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


def _include(body: str, functions: Mapping[str, str]) -> str:
    """The code with the bodies of functions that it calls with all of its arguments."""
    included: set[str] = set()
    pieces = [body]
    for piece in pieces:
        for name in dict.fromkeys(found[1] for found in PASSES_ALL.finditer(piece)):
            if name in functions and name not in included:
                included.add(name)
                pieces.append(functions[name])
    return "\n".join(PASSES_ALL.sub(partial(_without_all, names=included), piece) for piece in pieces)


def _without_all(found: re.Match[str], names: Container[str]) -> str:
    """A call without its `"$@"`, whose place the code of the function takes."""
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


def _places(body: str, offset: int) -> dict[int, _Place]:
    """What the code says about each place; `offset` is how far the arguments were shifted before."""
    places: dict[int, _Place] = {}
    for found in PLACE.finditer(body):
        number = int(found["braced"] or found["digit"]) + offset
        place = places.setdefault(number, _Place(line=body.count("\n", 0, found.start()) + 1))
        how = found["how"] or ""
        if how.startswith((":-", "-", ":=", "=")):
            place.optional = True
            place.default = how.lstrip(":")[1:]
        elif how.startswith((":+", "+")):
            place.optional = True
        elif how.startswith((":?", "?")):
            place.required = True
    for found in ASSIGNED.finditer(body):
        number = int(found[2] or found[4]) + offset
        if number in places and not places[number].name:
            places[number].name = found[1]
    return places


def _with_places(body: str, usage: list[Parameter], summary: str) -> CommandLine:
    """A file that takes its words by their places alone."""
    places: dict[int, _Place] = {}
    offset, start = 0, 0
    warnings: list[tuple[int, str]] = []
    for count, found in enumerate(SHIFT.finditer(body)):
        if count > MAX_PLACES or _is_in_loop(body, found.start()):
            return _with_rest(body, usage, summary)
        _merge(places, _places(body[start : found.start()], offset))
        offset += int(found[1] or 1)
        start = found.end()
    _merge(places, _places(body[start:], offset))
    _note_tests(body, places, offset)
    first_rest = [int(found[1]) for found in SLICE.finditer(body)]
    rest = bool(ALL.search(body[start:])) or bool(first_rest)
    highest = min(max(places, default=0), MAX_PLACES)
    if first_rest:
        highest = max(highest, first_rest[0] - 1)
    named = [one for one in usage if not one.option]
    parameters: list[Parameter] = []
    unnamed: list[str] = []
    for number in range(1, highest + 1):
        place = places.get(number, _Place())
        shown = named[number - 1] if number <= len(named) and named[number - 1].takes != SPREAD else None
        name = (shown.name if shown else "") or place.name.lower().strip("_") or f"arg{number}"
        if not shown and not place.name:
            unnamed.append(name)
        parameters.append(_parameter(name, place, _choices(body, place, number) if offset == 0 else []))
    if unnamed:
        usage_line = " ".join(f"<{one.name}>" for one in parameters)
        text = f"nothing names {', '.join(unnamed)}; write a comment `# Usage: … {usage_line}` with better names"
        warnings.append((places[highest].line if highest in places else 1, text))
    if rest:
        spread = next((one.name for one in named if one.takes == SPREAD and one.name), REST)
        parameters.append(_spread(spread, required=_least(body) > highest))
    return _finish(body, parameters, summary, PLAIN, warnings)


def _is_in_loop(body: str, position: int) -> bool:
    before = body[:position]
    opened = len(re.findall(r"(?:^|[;\n|&])[ \t]*+(?:while|for|until)\b", before))
    return opened > len(re.findall(r"(?:^|[;\n])[ \t]*+done\b", before))


def _with_rest(body: str, usage: list[Parameter], summary: str) -> CommandLine:
    """A file that works its words off one by one."""
    named = [one.name for one in usage if not one.option]
    name = (named[0] if len(named) == 1 else "") or REST
    return _finish(body, [_spread(name, required=False)], summary, PLAIN, [])


def _spread(name: str, *, required: bool) -> Parameter:
    schema = {"type": "array", "items": dict(WORD), **({"minItems": 1} if required else {})}
    return Parameter(name=name, schema=schema, takes=SPREAD, required=required)


def _merge(places: dict[int, _Place], more: dict[int, _Place]) -> None:
    for number, place in more.items():
        known = places.setdefault(number, place)
        known.name = known.name or place.name
        known.optional = known.optional or place.optional
        known.default = known.default if known.default is not None else place.default


def _note_tests(body: str, places: dict[int, _Place], offset: int) -> None:
    """Take over what the file checks itself: how many words it wants, and which may be empty."""
    least = _least(body)
    for number, place in places.items():
        if number <= least:
            place.required, place.optional = True, place.optional and place.default is not None
    for found in TESTED.finditer(body):
        place_or_none = places.get(int(found[2]) + offset) or places.get(int(found[2]))
        if place_or_none is None or place_or_none.required:
            continue
        behind = body[found.end() : found.end() + 300].partition("\nfi")[0]
        stops = re.search(r"\b(?:exit[ \t]++[1-9]|usage|die|return[ \t]++[1-9])\b", behind)
        if found[1] == "n" or not stops:
            place_or_none.optional = True
    for found in ARITHMETIC.finditer(body):
        for inner in PLACE.finditer(found[1]):
            number = int(inner["braced"] or inner["digit"]) + offset
            if number in places:
                places[number].integer = True
        names = set(re.findall(r"[A-Za-z_]\w*", found[1]))
        for known in places.values():
            known.integer = known.integer or (bool(known.name) and known.name in names)


def _least(body: str) -> int:
    """How many words the file wants at least, as its own check of `$#` says."""
    for found in COUNTED.finditer(body):
        behind = body[found.end() : found.end() + 300].partition("\nfi")[0]
        if not re.search(r"\b(?:exit|usage|die|return)\b", behind):
            continue
        operator, number = found[1], int(found[2])
        if operator in {"-lt", "<", "-ne", "!="}:
            return number
        if operator in {"-eq", "==", "="} and number == 0:
            return 1
        if operator == "-le":
            return number + 1
    return 0


def _choices(body: str, place: _Place, number: int) -> list[str]:
    """The words that a `case` over the place knows, if it stops at any other."""
    subject = rf"\{{?{number}\b" if not place.name else rf"\{{?(?:{number}|{re.escape(place.name)})\b"
    found = re.search(rf"\bcase[ \t]++\"?\${subject}[^\n\"]*+\"?[ \t]++in\b", body)
    arms = [] if found is None else _arms_behind(body, found.end())
    words = [word for known, _ in arms for word in known if re.fullmatch(r"\w[\w.-]*+", word)]
    stops = any("*" in known and re.search(r"\bexit[ \t]++[1-9]|\busage\b|\bdie\b", arm) for known, arm in arms)
    return words if stops and not place.optional else []


def _parameter(name: str, place: _Place, choices: list[str]) -> Parameter:
    schema: dict[str, object] = dict(INTEGER if place.integer else WORD)
    texts = [f"One of {', '.join(dict.fromkeys(choices))}."] if choices else []
    default = place.default
    if default and not re.search(r"[$`]", default):
        plain = default.strip("\"'")
        texts.append(f"Without it: {plain[:200]}")
    if texts:
        schema["description"] = " ".join(texts)
    return Parameter(name=name, schema=schema, required=place.required or not place.optional)


def _finish(
    body: str, parameters: list[Parameter], summary: str, dashes: str, warnings: list[tuple[int, str]]
) -> CommandLine:
    taken = [one.name for one in parameters]
    problems: list[tuple[int, str]] = []
    if len(parameters) > MAX_PARAMETERS:
        problems.append((1, f"takes more than {MAX_PARAMETERS} arguments; declare those that matter"))
    twice = [name for name in taken if taken.count(name) > 1]
    if twice:
        problems.append((1, f"two arguments are called {twice[0]}; name them in a comment: # Usage: … <a> <b>"))
    # `cat "${1:-/dev/stdin}"` reads a file that is named, and its input only where none is.
    elsewhere = INSTEAD_OF_FILE.sub("", body)
    reads = _reads_input(elsewhere, parameters)
    stdin = STDIN if reads or elsewhere != body else ""
    return CommandLine(
        summary=summary,
        parameters=tuple(parameters),
        stdin=stdin if stdin not in taken else "",
        needs_stdin=reads,
        dashes=dashes,
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


def _reads_input(body: str, parameters: list[Parameter]) -> bool:
    if any(pattern.search(body) for pattern in READS_INPUT):
        return True
    for found in islice(READ_LOOP.finditer(body), MAX_LOOPS):
        ends = re.compile(r"(?:^|;)[ \t]*+done\b([^\n;]*+)", re.MULTILINE).search(body, found.end())
        before = body[max(0, found.start() - 200) : found.start()].rpartition("\n")[2]
        if (ends is None or "<" not in ends[1]) and not before.rstrip().endswith("|"):
            return True
    if parameters:
        return False
    first = FILTER.match(body)
    return first is not None and not re.search(r"(?:^|\s)(?:\"?[$/.~]|<|[\w-]+\.\w+)", first[1].partition("|")[0])


def _with_inner_input(line: CommandLine, body: str, functions: Mapping[str, str]) -> CommandLine:
    """The same with standard input, if a function that the code calls without its arguments reads it."""
    if line.stdin or line.problems or STDIN in line.names:
        return line
    left = dict(functions)
    pieces = [JOINED.sub(" ", body)]
    for piece in pieces:
        called = {found[1] for found in CALLS.finditer(piece)} & left.keys()
        pieces += [JOINED.sub(" ", left.pop(name)) for name in called]
    reached = "\n".join(pieces)
    # What a here-document feeds is no input of the program, and neither is what stands behind a pipe.
    reads = _reads_input(INSTEAD_OF_FILE.sub("", reached), list(line.parameters)) or any(
        map(_is_filter, FILTERS.finditer(reached))
    )
    return replace(line, stdin=STDIN) if reads else line


def _is_filter(found: re.Match[str]) -> bool:
    """Whether a command works on its standard input: no file is named, and nothing is fed to it."""
    rest = found[2]
    if "<" in rest or "$(" in rest or "`" in rest:
        return False
    valued = FILTER_VALUES.get(found[1], "")
    words = iter(re.findall(r"(?:''|\"[^\"\n]*+\"|[^\s\"'])+", rest))
    operands = 0
    for word in words:
        if word.startswith(">") or word in {"1>", "2>", "&>"}:
            next(words, "") if word.rstrip("&").endswith(">") else None
        elif word.startswith("-") and len(word) > 1:
            takes_next = len(word) == len("-n") and word[1] in valued
            next(words, "") if takes_next else None
            operands += 1 if word in {"-e", "-f"} and takes_next and found[1] in NEED_PROGRAM else 0
        elif not re.match(r"\d?>", word):
            operands += 1
    return operands == (
        2 if found[1] == "tr" and operands == len("tr") else 1 if found[1] in {*NEED_PROGRAM, "tr"} else 0
    )


# Options: getopts, and loops that compare $1 with each option.


def _with_getopts(found: re.Match[str], body: str, text: str, usage: list[Parameter], summary: str) -> CommandLine:
    arms = _arms(body, re.compile(rf"\bcase[ \t]++\"?\$\{{?{re.escape(found[2])}\}}?\"?[ \t]++in\b"))
    parameters: list[Parameter] = []
    letters = found[1].lstrip(":")
    for index, letter in enumerate(letters):
        takes_value = letters[index + 1 : index + 2] == ":"
        if letter == ":" or (letter in HELP and not takes_value):
            continue
        arm = arms.get(letter, "")
        if not takes_value and _only_helps(arm):
            continue
        option = f"-{letter}"
        parameters.append(_option_parameter(option, arm, body, text, usage, takes_value=takes_value, glued=True))
    after = _behind_options(body, found.end())
    words = [one for one in _with_places(after, usage, "").parameters if not one.option]
    return _finish(body, [*parameters, *words], summary, AFTER_END, [])


def _behind_options(body: str, position: int) -> str:
    """The code behind the loop; a shift by OPTIND makes its places those of the words."""
    found = re.compile(
        r"\bshift[ \t]++\"?\$\(\([^\n]*?OPTIND[^\n]*?\)\)\"?|\bshift[ \t]++\"?\$\(expr[^\n]*?OPTIND[^\n]*?\)\"?"
    ).search(body, position)
    return "" if found is None else body[found.end() :]


def _option_loop(body: str) -> re.Match[str] | None:
    """A `case` over `$1`, or over the variable of a loop, whose arms are options."""
    for found in islice(OPTION_LOOP.finditer(body), MAX_LOOPS):
        arms = _arms_behind(body, found.end())
        if any(word.startswith("-") and word not in HELP for words, _ in arms for word in words) and _is_in_loop(
            body, found.start()
        ):
            return found
    return None


def _with_loop(found: re.Match[str], body: str, text: str, usage: list[Parameter], summary: str) -> CommandLine:
    parameters: list[Parameter] = []
    has_words = False
    for words, arm in _arms_behind(body, found.end()):
        options = [
            word.removesuffix("=*").removesuffix("*").removesuffix("=") for word in words if word.startswith("-")
        ]
        options = [option for option in options if option not in HELP and option.strip("-")]
        if not options:
            has_words = has_words or (words == ["*"] and not re.search(r"\bexit\b|\busage\b|\bdie\b", arm))
            continue
        if "--help" in words or _only_helps(arm):
            continue
        glued = any(word.endswith("=*") for word in words)
        takes_value = glued or bool(re.search(r"\$\{?2\b|\$\{?OPTARG|\bshift[ \t]++2\b", arm))
        option = next((one for one in options if one.startswith("--")), options[0])
        parameter = _option_parameter(option, arm, body, text, usage, takes_value=takes_value, glued=glued)
        known = next((one for one in parameters if one.name == parameter.name), None)
        if known is not None:
            if known.option.split("=")[0] == parameter.option and glued != known.glued:
                parameters[parameters.index(known)] = replace(known, glued=True)
            continue
        if glued and not any(not word.endswith("=*") and word.startswith("-") for word in words):
            parameter = replace(parameter, option=f"{option}=", glued=False)
        parameters.append(parameter)
    end = re.compile(r"^[ \t]*+done\b|;[ \t]*+done\b", re.MULTILINE).search(body, found.end())
    behind = "" if end is None else body[end.end() :]
    rest = list(_with_places(behind, usage, "").parameters)
    if has_words and not rest:
        named = [one for one in usage if not one.option]
        rest = [_spread((named[0].name if len(named) == 1 else "") or REST, required=False)]
    return _finish(body, [*parameters, *rest], summary, AFTER_END, [])


def _option_parameter(
    option: str, arm: str, body: str, text: str, usage: list[Parameter], *, takes_value: bool, glued: bool
) -> Parameter:
    known = next((one for one in usage if one.option == option), None)
    target = next((found for found in SETS.finditer(arm) if found[3] or not takes_value), None)
    spelled = option.lstrip("-").replace("-", "_")
    variable = target[1].lower().strip("_") if target is not None else ""
    if not takes_value and target is not None and not SETS_TRUE.search(arm):
        variable = ""
    name = spelled if len(spelled) > 1 else variable or (known.name if known else "") or spelled
    described = _describe_option(option, text)
    if not takes_value:
        schema: dict[str, object] = {"type": "boolean"}
        return Parameter(name=name, schema={**schema, **described}, option=option, takes=FLAG, glued=glued)
    is_list = target is not None and bool(target[2])
    integer = (
        bool(variable)
        and any(re.search(rf"\b{re.escape(target[1])}\b", found[1]) for found in ARITHMETIC.finditer(body))
        if target is not None
        else False
    )
    schema = dict(INTEGER if integer else WORD)
    if is_list:
        return Parameter(
            name=name,
            schema={"type": "array", "items": schema, **described},
            option=option,
            takes="repeat",
            glued=glued,
        )
    return Parameter(
        name=name, schema={**schema, **described}, option=option, required=_is_demanded(target, body), glued=glued
    )


def _is_demanded(target: re.Match[str] | None, body: str) -> bool:
    """Whether the file stops where the variable is empty."""
    if target is None:
        return False
    name = re.escape(target[1])
    if re.search(rf"\$\{{{name}:?\?", body):
        return True
    for found in re.finditer(rf"-z[ \t]++\"?\$\{{?{name}\b", body):
        behind = body[found.end() : found.end() + 300].partition("\nfi")[0]
        if re.search(r"\bexit[ \t]++[1-9]|\busage\b|\bdie\b", behind):
            return True
    return False


def _describe_option(option: str, text: str) -> dict[str, object]:
    """The text beside the option in a usage message or a comment."""
    found = re.compile(
        rf"^[ \t#]*+(?:-\w,?[ \t]++)?{re.escape(option)}\b(?:,?[ \t]++-{{1,2}}[\w-]++)?"
        r"(?:[ =]<?\[?[A-Za-z_]++\]?>?)?(?:[ \t]{2,}+|[ \t]*+[:-][ \t]++|\t)([A-Za-z][^\n\"]*+)",
        re.MULTILINE,
    ).search(text[:USAGE_LETTERS])
    return {"description": found[1].strip()[:500]} if found else {}


def _arms(body: str, head: re.Pattern[str]) -> dict[str, str]:
    found = head.search(body)
    if found is None:
        return {}
    return {word: arm for words, arm in _arms_behind(body, found.end()) for word in words}


def _arms_behind(body: str, position: int) -> list[tuple[list[str], str]]:
    """The arms of a case: their patterns, and their code."""
    inside = body[position : min(_end_of_case(body, position), position + CASE_LETTERS)]
    found = list(islice(ARM.finditer(_without_inner_cases(inside)), MAX_PARAMETERS))
    arms = []
    for index, arm in enumerate(found):
        words = [word.strip().strip("\"'") for word in arm[1].split("|")]
        stop = found[index + 1].start() if index + 1 < len(found) else len(inside)
        arms.append((words, inside[arm.end() : stop].rstrip().removesuffix(";;")))
    return arms


def _end_of_case(body: str, position: int) -> int:
    """Where the `esac` of a case stands whose `in` ends here."""
    depth = 1
    for found in CASES.finditer(body, position, position + MAX_CASE):
        depth += -1 if found[0].strip(" \t\n;") == "esac" else 1
        if depth == 0:
            return found.end() - len("esac")
    return len(body)


def _without_inner_cases(inside: str) -> str:
    """The text with each case in it blanked out; every letter stays in place."""
    pieces, position = [], 0
    while (found := CASES.search(inside, position)) is not None and found[0].strip(" \t\n;") != "esac":
        end = min(_end_of_case(inside, found.end()) + len("esac"), len(inside))
        pieces += [inside[position : found.start()], re.sub(r"[^\n]", " ", inside[found.start() : end])]
        position = end
    return "".join([*pieces, inside[position:]])


# Sub-commands: a `case` over the first word whose arms take words of their own.


def _sub_commands(whole: str, text: str) -> dict[str, CommandLine]:
    """How each sub-command takes its arguments; none where the first word is a value like any other."""
    body, functions = _apart(whole)
    found = _dispatch(body)
    # The case may stand in a function that is called with all arguments, as `main` is.
    for _ in range(MAX_INCLUDED):
        name = next((call[1] for call in PASSES_ALL.finditer(body) if call[1] in functions), "")
        if found is not None or not name:
            break
        body = _include(body, {name: functions.pop(name)})
        found = _dispatch(body)
    if found is None:
        return {}
    end = _end_of_case(body, found.end())
    before, behind = body[: found.start()], body[end:].removeprefix("esac")
    arms = [(words, arm) for words, arm in _arms_behind(body, found.end()) if _names_command(words, arm)]
    is_shifted = SHIFT.search(before) is not None
    if not any(_takes_words(_include(arm, functions), is_shifted=is_shifted) for _, arm in arms):
        return {}
    codes: dict[str, str] = {}
    for words, arm in arms:
        # One that looks at the word itself does something else for each; otherwise `ls|list` are two names of one command.
        word_itself = "|".join([*([re.escape(found[1])] if found[1] else []), *([] if is_shifted else ["1"])])
        looks = re.compile(rf"\$\{{?(?:{word_itself or '0'})\b").search(_include(arm, functions))
        for word in words if looks and not SHIFT.search(arm, 0, looks.start()) else words[:1]:
            named = _spelled_out(arm, found[1] or "1", word, functions)
            codes[word] = _include(f"{before}\n:\n{named}\n:\n{behind}", functions)
    if len(codes) < LEAST_COMMANDS:
        return {}
    return {word: _sub_command(word, code, text, functions) for word, code in codes.items()}


def _spelled_out(arm: str, variable: str, word: str, functions: Mapping[str, str]) -> str:
    """The arm with the names of functions that are made of the command, such as `cmd_$sub`, written out."""

    def spell(found: re.Match[str]) -> str:
        names = (f"{found[1]}{word}{found[2]}", f"{found[1]}{word.replace('-', '_')}{found[2]}")
        return next((name for name in names if name in functions), found[0])

    made = re.compile(
        rf"\"?([\w:-]*+)\$(?:\{{{re.escape(variable)}(?://?-/_)?\}}|{re.escape(variable)}\b)([\w:-]*+)\"?"
    )
    return made.sub(spell, arm)


def _dispatch(body: str) -> re.Match[str] | None:
    """The `case` over the first word that stands in no loop and behind no options."""
    options = GETOPTS.search(body) or _option_loop(body)
    for found in islice(DISPATCH.finditer(body), MAX_LOOPS):
        if options is not None and options.start() < found.start():
            return None
        is_first = not found[1] or re.search(
            rf"(?:^|[\s;]){re.escape(found[1])}=\"?\$(?:1|\{{1[^}}\n]*+\}})\"?", body[: found.start()]
        )
        if is_first and not _is_in_loop(body, found.start()):
            return found
    return None


def _names_command(words: list[str], arm: str) -> bool:
    """Whether an arm is a command, and not the help or what is left."""
    is_plain = all(re.fullmatch(r"-{0,2}\w[\w.:-]*+", word) for word in words) and words[0][:1] != "-"
    return is_plain and words[0] != "help" and SHOWS_HELP.fullmatch(arm) is None


def _takes_words(arm: str, *, is_shifted: bool) -> bool:
    """Whether an arm takes words behind the command."""
    is_shifted = is_shifted or SHIFT.search(arm) is not None
    places = (int(found["braced"] or found["digit"]) for found in PLACE.finditer(arm))
    return bool(ALL.search(arm) or GETOPTS.search(arm)) or any(is_shifted or number > 1 for number in places)


def _sub_command(word: str, code: str, text: str, functions: Mapping[str, str]) -> CommandLine:
    shown, summary = _usage_of(word, text)
    is_shifted = SHIFT.search(code) is not None
    if not is_shifted and (GETOPTS.search(code) or _option_loop(code) is not None):
        problem = f"{word} reads options, and the word {word} stands before them; shift it away first"
        return CommandLine(summary=summary, problems=((1, problem),))
    named = [Parameter(name=COMMAND), *shown]
    line = _with_inner_input(_read_body(_with_names(code, functions), text, named, summary), code, functions)
    # The first place is the command itself; those behind it are counted without it.
    has_options = any(one.option for one in line.parameters)
    first = 0 if has_options or not line.parameters or line.parameters[0].takes == SPREAD else 1
    parameters = [replace(one, name=_one_less(one.name)) for one in line.parameters[first:] if one.name != COMMAND]
    warnings = [(number, _one_less(said.replace(f"<{COMMAND}>", word))) for number, said in line.warnings]
    return replace(line, before=(word,), parameters=tuple(parameters), warnings=tuple(warnings))


def _one_less(text: str) -> str:
    """A text that speaks of places by their numbers, without the command before them."""
    return re.sub(r"\barg([2-9]|[1-9]\d)\b", lambda found: f"arg{int(found[1]) - 1}", text)


def _with_names(code: str, functions: Mapping[str, str]) -> str:
    """The code with a variable for each place that it hands to a function, by the name that it has there."""
    lines: list[str] = []
    for name, inner in functions.items():
        for call in islice(
            re.finditer(rf"(?:^|[\s;&|]){re.escape(name)}((?:[ \t]++\"?\$\{{?[1-9]\}}?\"?)+)", code), MAX_LOOPS
        ):
            names = {int(found[2] or found[4]): found[1] for found in ASSIGNED.finditer(inner)}
            given = [int(digit) for digit in re.findall(r"[1-9]", call[1])]
            lines += [f"{names[index]}=${number}" for index, number in enumerate(given, 1) if index in names]
            code = f"{code[: call.start()]}\n{'; '.join(lines)}\n{code[call.start() :]}" if lines else code
    return code


def _usage_of(word: str, text: str) -> tuple[list[Parameter], str]:
    """The words that a line of the usage names behind a sub-command, and what it says about it."""
    program = r"(?:\$0|\$\{0[^}]*+\}|\$\(basename[^)]*+\)|\$\w++|[\w./-]++)[ \t]++"
    found = re.compile(
        rf"(?:^[ \t#]*+(?:echo[ \t]++)?[\"']?(?:usage:?[ \t]++)?(?:{program})?|\busage:?[ \t]++{program}|[ \t]\|[ \t]++)"
        rf"{re.escape(word)}\b(?![\w()|=.-])((?:[ \t](?![ \t]|-[ \t])[^ \t\n\"']++)*)"
        r"(?:[ \t]{2,}+(?:-[ \t]++|\#[ \t]*+)?|[ \t]++-[ \t]++|[ \t]*+:[ \t]++)?([^\n\"']*+)",
        re.MULTILINE | re.IGNORECASE,
    ).search(text[:USAGE_LETTERS])
    if found is None:
        return [], ""
    shown, others, _ = found[1].partition(" |")
    return [one for one in _usage_words(shown) if not one.option], "" if others else found[2].strip()[:500]


def _only_helps(arm: str) -> bool:
    """Whether the arm shows the usage and ends."""
    return bool(re.search(r"\b(?:usage|help|show_help|print_usage|exit)\b", arm)) and not SETS.search(arm)


def _usage(text: str) -> list[Parameter]:
    """The words and options that a usage line names, in their order."""
    found = next((match for match in USAGE.finditer(text[:USAGE_LETTERS]) if match[1].strip()), None)
    if found is None:
        return []
    return list(_usage_words(found[1]))


def _usage_words(line: str) -> Iterator[Parameter]:
    option = ""
    for piece in _pieces(line):
        bare = piece.strip("[]").rstrip(".")
        if bare.startswith("-"):
            option, _, value = bare.partition("=")
            inner = option.split()
            if len(inner) > 1:
                yield Parameter(name=_plain(inner[1]), option=inner[0])
                option = ""
            elif value:
                yield Parameter(name=_plain(value), option=option)
                option = ""
            continue
        # `{start|stop}` shows the values of a word and not its name.
        name = "" if "|" in bare else _plain(bare)
        if (not name and "|" not in bare) or name in {"options", "option", "flags"}:
            continue
        is_many = "..." in piece or "…" in piece
        if option:
            yield Parameter(name=name, option=option)
            option = ""
        else:
            yield Parameter(name=name, takes=SPREAD if is_many else "value", required="[" not in piece)


def _pieces(line: str) -> Iterable[str]:
    """The words of a usage line; what stands in brackets is one."""
    return re.findall(r"\[[^\]\n]*+\](?:\.\.\.)?|<[^>\n]*+>(?:\.\.\.)?|[^\s\[\]]+", line.partition("#")[0])


def _plain(word: str) -> str:
    name = re.sub(r"\W+", "_", word.strip("<>{}[]\"'. ").lower()).strip("_")
    return name if re.fullmatch(r"[a-z]\w{0,63}", name) else ""
