"""Derive the positional arguments of Bash code (`$1`, `"$@"`), their names, and whether it reads standard input."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.bash_source import arms_behind
from toolcrib.lib.command_line import MAX_PARAMETERS, PLAIN, SPREAD, STDIN, WORD, CommandLine, Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

REST = "args"
INTEGER = {"type": "integer"}
# More positional arguments are not usable, and a file full of `$1`, `$2` … must not take long.
MAX_PLACES = 40
MAX_LOOPS = 20
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
# The same at the beginning of any command that is not after a pipe.
FILTERS = re.compile(
    r"(?:^|[;&\n{(]|\bthen\b|\bdo\b|\belse\b)[ \t]*+"
    r"(jq|sort|uniq|wc|tr|rev|tac|nl|head|tail|base64|sha\d+sum|md5sum|sed|awk|grep|cut|fold)\b([^\n;|&)]*+)",
    re.MULTILINE,
)
NEED_PROGRAM = frozenset({"jq", "sed", "awk", "grep"})
# The short options of each filter that are followed by a value.
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
# The end of a line that continues on the next one.
JOINED = re.compile(r"(?<=\|)[ \t]*+\n[ \t]*+|\\\n[ \t]*+")


@dataclass(slots=True)
class _Place:
    """What the code says about one positional argument, such as `$1`."""

    name: str = ""
    default: str | None = None
    optional: bool = False
    required: bool = False
    integer: bool = False
    line: int = 1


def find_places(body: str, offset: int) -> dict[int, _Place]:
    """The positional arguments of the code by number; `offset` is how far they were shifted before."""
    places: dict[int, _Place] = {}
    for found in PLACE.finditer(body):
        number = int(found["braced"] or found["digit"]) + offset
        if number not in places:
            places[number] = _Place(line=body.count("\n", 0, found.start()) + 1)
        place = places[number]
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


def with_places(body: str, usage: list[Parameter], summary: str) -> CommandLine:
    """The command line of a file that has only positional arguments."""
    places: dict[int, _Place] = {}
    offset, start = 0, 0
    warnings: list[tuple[int, str]] = []
    for count, found in enumerate(SHIFT.finditer(body)):
        if count > MAX_PLACES or is_in_loop(body, found.start()):
            return _with_rest(body, usage, summary)
        _merge(places, find_places(body[start : found.start()], offset))
        offset += int(found[1] or 1)
        start = found.end()
    _merge(places, find_places(body[start:], offset))
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
        name_of_rest = next((one.name for one in named if one.takes == SPREAD and one.name), REST)
        parameters.append(spread(name_of_rest, required=_least(body) > highest))
    return finish(body, parameters, summary, PLAIN, warnings)


def is_in_loop(body: str, position: int) -> bool:
    """Whether the position is inside a loop."""
    before = body[:position]
    opened = len(re.findall(r"(?:^|[;\n|&])[ \t]*+(?:while|for|until)\b", before))
    return opened > len(re.findall(r"(?:^|[;\n])[ \t]*+done\b", before))


def _with_rest(body: str, usage: list[Parameter], summary: str) -> CommandLine:
    """The command line of a file that shifts through its words in a loop."""
    named = [one.name for one in usage if not one.option]
    name = (named[0] if len(named) == 1 else "") or REST
    return finish(body, [spread(name, required=False)], summary, PLAIN, [])


def spread(name: str, *, required: bool) -> Parameter:
    """All remaining words as one list."""
    schema = {"type": "array", "items": dict(WORD), **({"minItems": 1} if required else {})}
    return Parameter(name=name, schema=schema, takes=SPREAD, required=required)


def _merge(places: dict[int, _Place], more: dict[int, _Place]) -> None:
    for number, place in more.items():
        known = places.setdefault(number, place)
        known.name = known.name or place.name
        known.optional = known.optional or place.optional
        known.default = known.default if known.default is not None else place.default


def _note_tests(body: str, places: dict[int, _Place], offset: int) -> None:
    """Mark arguments as required or optional by the tests of the file: the number of words, and which may be empty."""
    least = _least(body)
    for number, place in places.items():
        if number <= least:
            place.required, place.optional = True, place.optional and place.default is not None
    for found in TESTED.finditer(body):
        place_or_none = places.get(int(found[2]) + offset) or places.get(int(found[2]))
        if place_or_none is None or place_or_none.required:
            continue
        following = body[found.end() : found.end() + 300].partition("\nfi")[0]
        stops = re.search(r"\b(?:exit[ \t]++[1-9]|usage|die|return[ \t]++[1-9])\b", following)
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
    """The minimum number of words, from the file's own test of `$#`."""
    for found in COUNTED.finditer(body):
        following = body[found.end() : found.end() + 300].partition("\nfi")[0]
        if not re.search(r"\b(?:exit|usage|die|return)\b", following):
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
    """The values that a `case` over the argument accepts, if it exits for any other."""
    subject = rf"\{{?{number}\b" if not place.name else rf"\{{?(?:{number}|{re.escape(place.name)})\b"
    found = re.search(rf"\bcase[ \t]++\"?\${subject}[^\n\"]*+\"?[ \t]++in\b", body)
    arms = [] if found is None else arms_behind(body, found.end())
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


def finish(
    body: str, parameters: list[Parameter], summary: str, dashes: str, warnings: list[tuple[int, str]]
) -> CommandLine:
    """The command line, with checks for distinct names and the limit, and with standard input."""
    taken = [one.name for one in parameters]
    problems: list[tuple[int, str]] = []
    if len(parameters) > MAX_PARAMETERS:
        problems.append((1, f"takes more than {MAX_PARAMETERS} arguments; declare those that matter"))
    twice = [name for name in taken if taken.count(name) > 1]
    if twice:
        problems.append((1, f"two arguments are called {twice[0]}; name them in a comment: # Usage: … <a> <b>"))
    # `cat "${1:-/dev/stdin}"` reads standard input only if no file is given.
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


def with_inner_input(line: CommandLine, body: str, functions: Mapping[str, str]) -> CommandLine:
    """The command line with standard input, if a function that the code calls without its arguments reads it."""
    if line.stdin or line.problems or STDIN in line.names:
        return line
    left = dict(functions)
    pieces = [JOINED.sub(" ", body)]
    for piece in pieces:
        called = {found[1] for found in CALLS.finditer(piece)} & left.keys()
        pieces += [JOINED.sub(" ", left.pop(name)) for name in called]
    reached = "\n".join(pieces)
    # A command that reads a here-document or a pipe does not read the input of the program.
    reads = _reads_input(INSTEAD_OF_FILE.sub("", reached), list(line.parameters)) or any(
        map(_is_filter, FILTERS.finditer(reached))
    )
    return replace(line, stdin=STDIN) if reads else line


def _is_filter(found: re.Match[str]) -> bool:
    """Whether a command reads the standard input of the program: it has no file and no redirection."""
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
