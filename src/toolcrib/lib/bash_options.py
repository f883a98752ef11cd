"""Derive the options of Bash code from `getopts`, or from a loop that compares `$1` with each option."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

from toolcrib.lib.bash_source import arms_behind, arms_of
from toolcrib.lib.bash_words import (
    ARITHMETIC,
    INTEGER,
    MAX_LOOPS,
    REST,
    finish,
    is_in_loop,
    spread,
    with_places,
)
from toolcrib.lib.command_line import (
    AFTER_END,
    FLAG,
    WORD,
    CommandLine,
    Parameter,
)
from toolcrib.lib.usage_line import USAGE_LETTERS

OPTION_LOOP = re.compile(
    r"\bcase[ \t]++\"?\$(?:\{1(?::-)?\}|1)\"?[ \t]++in\b|\bcase[ \t]++\"?\$\{?([A-Za-z_]\w*+)\}?\"?[ \t]++in\b"
)
SETS = re.compile(r"(?:^|[;&|\s{(])([A-Za-z_]\w*+)(?:\+?=)(\(?)[\"']?(\$\{?OPTARG|\$\{?2\b|\$\{?1#|\$\{[A-Za-z_]\w*#|)")
# An arm that only assigns the word to a variable.
SETS_WORD = re.compile(r"\s*+([A-Za-z_]\w*+)=\"?\$(?:1|\{1\})\"?\s*+;?\s*+(?:shift(?:[ \t]++1)?\s*+;?\s*+)?")
SETS_TRUE = re.compile(r"=[\"']?(?:true|1|yes|on|y)\b[\"']?|\(\(", re.IGNORECASE)
HELP = frozenset({"h", "help", "?", ":", "*", "-h", "--help", "--", "-*", "--*", "-?", "\\?"})


def with_getopts(found: re.Match[str], body: str, text: str, usage: list[Parameter], summary: str) -> CommandLine:
    """The command line of a file that parses its options with `getopts`."""
    arms = arms_of(body, re.compile(rf"\bcase[ \t]++\"?\$\{{?{re.escape(found[2])}\}}?\"?[ \t]++in\b"))
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
    after = _code_after_options(body, found.end())
    words = [one for one in with_places(after, usage, "").parameters if not one.option]
    return finish(body, [*parameters, *words], summary, AFTER_END, [])


def _code_after_options(body: str, position: int) -> str:
    """The code after the shift by OPTIND, where `$1` is the first positional argument; empty if there is no such shift."""
    found = re.compile(
        r"\bshift[ \t]++\"?\$\(\([^\n]*?OPTIND[^\n]*?\)\)\"?|\bshift[ \t]++\"?\$\(expr[^\n]*?OPTIND[^\n]*?\)\"?"
    ).search(body, position)
    return "" if found is None else body[found.end() :]


def option_loop(body: str) -> re.Match[str] | None:
    """A `case` over `$1`, or over the variable of a loop, whose arms are options."""
    for found in islice(OPTION_LOOP.finditer(body), MAX_LOOPS):
        arms = arms_behind(body, found.end())
        if any(word.startswith("-") and word not in HELP for words, _ in arms for word in words) and is_in_loop(
            body, found.start()
        ):
            return found
    return None


def with_loop(found: re.Match[str], body: str, text: str, usage: list[Parameter], summary: str) -> CommandLine:
    """The command line of a file that parses its options in a loop."""
    parameters: list[Parameter] = []
    has_words = False
    single: Parameter | None = None
    for words, arm in arms_behind(body, found.end()):
        options = [
            word.removesuffix("=*").removesuffix("*").removesuffix("=") for word in words if word.startswith("-")
        ]
        options = [option for option in options if option not in HELP and option.strip("-")]
        if not options:
            if words == ["*"] and not re.search(r"\bexit\b|\busage\b|\bdie\b", arm):
                has_words, single = True, _single_word(arm, body)
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
    following = "" if end is None else body[end.end() :]
    rest = list(with_places(following, usage, "").parameters)
    if has_words and not rest:
        named = [one for one in usage if not one.option]
        rest = [single or spread((named[0].name if len(named) == 1 else "") or REST, required=False)]
    return finish(body, [*parameters, *rest], summary, AFTER_END, [])


def _single_word(arm: str, body: str) -> Parameter | None:
    """The word that an arm assigns to a variable; None if it collects words, or does something else."""
    found = SETS_WORD.fullmatch(arm)
    name = "" if found is None else found[1].lower().strip("_")
    return Parameter(name=name, schema=dict(WORD), required=_is_demanded(found, body)) if name else None


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
    """Whether the file exits if the variable is empty."""
    if target is None:
        return False
    name = re.escape(target[1])
    if re.search(rf"\$\{{{name}:?\?", body):
        return True
    for found in re.finditer(rf"-z[ \t]++\"?\$\{{?{name}\b", body):
        following = body[found.end() : found.end() + 300].partition("\nfi")[0]
        if re.search(r"\bexit[ \t]++[1-9]|\busage\b|\bdie\b", following):
            return True
    return False


def _describe_option(option: str, text: str) -> dict[str, object]:
    """The description next to the option in a usage message or a comment."""
    found = re.compile(
        rf"^[ \t#]*+(?:-\w,?[ \t]++)?{re.escape(option)}\b(?:,?[ \t]++-{{1,2}}[\w-]++)?"
        r"(?:[ =]<?\[?[A-Za-z_]++\]?>?)?(?:[ \t]{2,}+|[ \t]*+[:-][ \t]++|\t)([A-Za-z][^\n\"]*+)",
        re.MULTILINE,
    ).search(text[:USAGE_LETTERS])
    return {"description": found[1].strip()[:500]} if found else {}


def _only_helps(arm: str) -> bool:
    """Whether the arm only shows the usage and exits."""
    return bool(re.search(r"\b(?:usage|help|show_help|print_usage|exit)\b", arm)) and not SETS.search(arm)
