"""Derive the command line of a Bash file: `$1`, `getopts`, loops over options, `"$@"`, standard input.

The file is split into code, quoted text, comments and function bodies; nothing is expanded or run. The arguments of a function
count only if the file calls it with `"$@"`. Names come from the usage line, or from the variables that the arguments are
assigned to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.bash_options import option_loop, with_getopts, with_loop
from toolcrib.lib.bash_source import (
    PASSES_ALL,
    arms_behind,
    decode,
    describe,
    end_of_case,
    find_problem,
    include_called,
    own_code,
    split_functions,
    unreadable,
    without_quotes_and_comments,
)
from toolcrib.lib.bash_words import (
    ALL,
    ASSIGNED,
    MAX_LOOPS,
    PLACE,
    SHIFT,
    find_places,
    is_in_loop,
    with_inner_input,
    with_places,
)
from toolcrib.lib.command_line import (
    SPREAD,
    STDIN,
    CommandLine,
    Parameter,
)
from toolcrib.lib.usage_line import USAGE_LETTERS, read_usage, usage_words

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_INCLUDED = 10
# A case with fewer arms validates a value instead of selecting a sub-command.
LEAST_COMMANDS = 2
COMMAND = "command"
GETOPTS = re.compile(r"\bgetopts[ \t]++[\"']?([:\w]++)[\"']?[ \t]++\"?([A-Za-z_]\w*+)")
DISPATCH = re.compile(
    r"(?:^|[;&|\n(])[ \t]*+case[ \t]++\"?\$(?:\{1(?::?-[^}\n]*+)?\}|1|\{?([A-Za-z_]\w*+)(?::?-[^}\n]*+)?\}?)\"?[ \t]++in\b"
)
# `python3 -c 'json.load(sys.stdin)'` at the beginning of a command: not after a pipe, and without `<`.
INLINE_CODE_READS_INPUT = re.compile(
    r"(?:^|[;&{(])[ \t]*+(?:python[\d.]*+|node|ruby|perl|php)[ \t][^\n|<#'\"]{0,200}?-[A-Za-z]*+[ \t]++"
    r"(?:'[^']{0,4000}?(?:stdin|STDIN|/dev/fd/0)[^']{0,4000}+'|\"[^\"]{0,4000}?(?:stdin|STDIN|/dev/fd/0)[^\"]{0,4000}+\")[^\n|<]*+(?:$|\|)",
    re.MULTILINE,
)
SHOWS_HELP = re.compile(r"\s*+(?:print_|show_)?(?:usage|help)\b[^\n;]*+;?(?:\s*+exit\b[^\n;]*+;?)?\s*+")


def read_bash_program(code: bytes) -> CommandLine:
    """The command line of the file; `problems` say what could not be derived."""
    if problem := unreadable(code):
        return CommandLine(problems=(problem,))
    text = decode(code)
    whole = without_quotes_and_comments(text)
    body = own_code(whole)
    usage = read_usage(text)
    summary = describe(text)
    if problem := find_problem(text, body):
        return CommandLine(summary=summary, problems=(problem,))
    if actions := _sub_commands(whole, text):
        return CommandLine(summary=summary, actions=actions)
    line = with_inner_input(_read_body(body, text, usage, summary), body, split_functions(whole)[1])
    if not line.stdin and not line.problems and STDIN not in line.names and INLINE_CODE_READS_INPUT.search(text):
        return replace(line, stdin=STDIN)
    return line


def _read_body(body: str, text: str, usage: list[Parameter], summary: str) -> CommandLine:
    if found := GETOPTS.search(body):
        return with_getopts(found, body, text, usage, summary)
    loop = option_loop(body)
    if loop is not None:
        return with_loop(loop, body, text, usage, summary)
    return with_places(body, usage, summary)


def uses_odd_places(code: bytes) -> bool:
    """Whether the file reads `$1`, `$3` … as values, which are the names in a call with `--name value`."""
    body = own_code(without_quotes_and_comments(decode(code)))
    if GETOPTS.search(body) or option_loop(body) is not None or SHIFT.search(body):
        return False
    return any(number % 2 for number in find_places(body, 0))


# Sub-commands: a `case` over the first word whose arms read further words


def _sub_commands(whole: str, text: str) -> dict[str, CommandLine]:
    """The command line of each sub-command; empty if the first word is an ordinary value."""
    body, functions = split_functions(whole)
    found = _dispatch(body)
    # The case may be in a function that is called with all arguments, such as `main`.
    for _ in range(MAX_INCLUDED):
        name = next((call[1] for call in PASSES_ALL.finditer(body) if call[1] in functions), "")
        if found is not None or not name:
            break
        body = include_called(body, {name: functions.pop(name)})
        found = _dispatch(body)
    if found is None:
        return {}
    end = end_of_case(body, found.end())
    before, behind = body[: found.start()], body[end:].removeprefix("esac")
    arms = [(words, arm) for words, arm in arms_behind(body, found.end()) if _names_command(words, arm)]
    is_shifted = SHIFT.search(before) is not None
    if not any(_takes_words(include_called(arm, functions), is_shifted=is_shifted) for _, arm in arms):
        return {}
    codes: dict[str, str] = {}
    for words, arm in arms:
        # An arm that reads the word itself is a command for each pattern; otherwise `ls|list` are two names of one command.
        word_itself = "|".join([*([re.escape(found[1])] if found[1] else []), *([] if is_shifted else ["1"])])
        looks = re.compile(rf"\$\{{?(?:{word_itself or '0'})\b").search(include_called(arm, functions))
        for word in words if looks and not SHIFT.search(arm, 0, looks.start()) else words[:1]:
            named = _spelled_out(arm, found[1] or "1", word, functions)
            codes[word] = include_called(f"{before}\n:\n{named}\n:\n{behind}", functions)
    if len(codes) < LEAST_COMMANDS:
        return {}
    return {word: _sub_command(word, code, text, functions) for word, code in codes.items()}


def _spelled_out(arm: str, variable: str, word: str, functions: Mapping[str, str]) -> str:
    """The arm with function names that contain the command, such as `cmd_$sub`, expanded."""

    def spell(found: re.Match[str]) -> str:
        names = (f"{found[1]}{word}{found[2]}", f"{found[1]}{word.replace('-', '_')}{found[2]}")
        return next((name for name in names if name in functions), found[0])

    made = re.compile(
        rf"\"?([\w:-]*+)\$(?:\{{{re.escape(variable)}(?://?-/_)?\}}|{re.escape(variable)}\b)([\w:-]*+)\"?"
    )
    return made.sub(spell, arm)


def _dispatch(body: str) -> re.Match[str] | None:
    """The `case` over the first word that is not in a loop and not after options."""
    options = GETOPTS.search(body) or option_loop(body)
    for found in islice(DISPATCH.finditer(body), MAX_LOOPS):
        if options is not None and options.start() < found.start():
            return None
        is_first = not found[1] or re.search(
            rf"(?:^|[\s;]){re.escape(found[1])}=\"?\$(?:1|\{{1[^}}\n]*+\}})\"?", body[: found.start()]
        )
        if is_first and not is_in_loop(body, found.start()):
            return found
    return None


def _names_command(words: list[str], arm: str) -> bool:
    """Whether an arm is a command, and not the help or the default."""
    is_plain = all(re.fullmatch(r"-{0,2}\w[\w.:-]*+", word) for word in words) and words[0][:1] != "-"
    return is_plain and words[0] != "help" and SHOWS_HELP.fullmatch(arm) is None


def _takes_words(arm: str, *, is_shifted: bool) -> bool:
    """Whether an arm reads words after the command."""
    is_shifted = is_shifted or SHIFT.search(arm) is not None
    places = (int(found["braced"] or found["digit"]) for found in PLACE.finditer(arm))
    return bool(ALL.search(arm) or GETOPTS.search(arm)) or any(is_shifted or number > 1 for number in places)


def _sub_command(word: str, code: str, text: str, functions: Mapping[str, str]) -> CommandLine:
    shown, summary = _usage_of(word, text)
    is_shifted = SHIFT.search(code) is not None
    if not is_shifted and (GETOPTS.search(code) or option_loop(code) is not None):
        problem = f"{word} reads options, and the word {word} stands before them; shift it away first"
        return CommandLine(summary=summary, problems=((1, problem),))
    named = [Parameter(name=COMMAND), *shown]
    line = with_inner_input(_read_body(_with_names(code, functions), text, named, summary), code, functions)
    # The first position is the command itself; the others are counted without it.
    has_options = any(one.option for one in line.parameters)
    first = 0 if has_options or not line.parameters or line.parameters[0].takes == SPREAD else 1
    parameters = [replace(one, name=_one_less(one.name)) for one in line.parameters[first:] if one.name != COMMAND]
    warnings = [(number, _one_less(said.replace(f"<{COMMAND}>", word))) for number, said in line.warnings]
    return replace(line, before=(word,), parameters=tuple(parameters), warnings=tuple(warnings))


def _one_less(text: str) -> str:
    """A text with the numbers of arguments decreased by one, because the command is not counted."""
    return re.sub(r"\barg([2-9]|[1-9]\d)\b", lambda found: f"arg{int(found[1]) - 1}", text)


def _with_names(code: str, functions: Mapping[str, str]) -> str:
    """The code with an assignment for each positional argument that it passes to a function, named as in the function."""
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
    """The words that the usage text shows after a sub-command, and its description."""
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
    return [one for one in usage_words(shown) if not one.option], "" if others else found[2].strip()[:500]
