"""Parse the simple commands of a shell line, and name the constructs that are outside the supported grammar.

A line whose `unclear` is empty is parsed as both `sh` and `bash` parse it. Of any other line as many commands as possible
are parsed, so that a forbidden one is found; it may run further commands.
"""

from __future__ import annotations

import math
import posixpath
import re
from codecs import decode
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from toolcrib.lib.shell import (
    GLOB,
    UNKNOWN,
    Assignment,
    Command,
    Line,
    Redirection,
    Word,
    plain,
    unknown,
    unreadable,
)
from toolcrib.lib.shell.programs import CODE_AS_WORDS, DECLARES, SETS_VARIABLES, SHELLS, WRAPPERS, does_more, is_listed
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Values = Mapping[str, set[str]]

OPEN_BRACE, CLOSE_BRACE = "\x01", "\x02"  # unquoted braces while a word is built
MAX_LENGTH = 16_384
MAX_COMMANDS = 500
MAX_DEPTH = 12
MAX_ROUNDS = 4
MAX_OUTLINES = 32
MAX_GUESSES = 2000
MAX_GUESSED = 16
REMEMBERED_LENGTH = 1000

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
JOINS = re.compile(r"(?:\\\n)*")
# A shell knows only ASCII blanks, digits and letters here: `a\u00a0b` is one word, and `é=1` is not an assignment.
PLAIN = re.compile(r"[^ \t\n'\"\\$`*?\[{};&|()<>]+|\]")
SEPARATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[;&|]")
REDIRECTION = re.compile(r"[0-9]*(<<<|<<-|<<|<>|<&|>>|>\||>&|<(?!\()|>(?!\())")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?=)", re.ASCII)
SUBSCRIPT = re.compile(r"([A-Za-z_]\w*)\[", re.ASCII)
FUNCTION = re.compile(r"\([ \t]*\)")
BRACKET = re.compile(r"\[\[?(?=[ \t\n])")  # the command, not a pattern
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Escapes of `$'…'` that Python decodes as bash does.
SHARED_ESCAPES = re.compile(r"(?:[^\\\x80-\U0010ffff]|\\[abfnrtvxuU\\'\"0-7])*", re.DOTALL)
# Expansions to a value, a length, a default, or a value without a prefix or suffix.
CLEAR_EXPANSION = re.compile(r"\{#?\w+\}|\{\w+(?::?[-+?]|[#%])", re.ASCII)
BRACED_NAME = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
BRACES = re.compile(f"{OPEN_BRACE}([^{OPEN_BRACE}{CLOSE_BRACE}]*){CLOSE_BRACE}")
BRACKETS = re.compile(f"{GLOB}[^/{GLOB}{UNKNOWN}\\]]*\\]")  # `[a-z]`, whose `[` was replaced by GLOB
# In arithmetic a shell runs the commands in an index, even those between single quotes.
INDEX = re.compile(r"\w\[")
SHELL_LETTERS = re.compile(r"[\s;&|<>$`(){}]")
SHELL_CODE_OPTION = re.compile(r"-\w*c\w*|--command")
BRACE_LIST = re.compile(r"\{.*,.*\}")
CODE_PREFIX = re.compile(r"--?[\w-]+=|[A-Za-z_]\w*=|-[0iv]*S")
# Reserved words that only mark where a command begins or ends.
LEADS = frozenset(
    {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "fi", "done", "esac", "function"}
)
LOOPS = frozenset({"for", "select"})
NOT_IN_SH = frozenset({"[[", "case", "select"})
ENDS_GUESS = frozenset({";", "+", ":::"})
# Values of variables that the line does not set.
PRESET = {"HOME": "~", "PWD": "."}
NUMBERS = frozenset("?#$!")


def read_line(text: str) -> Line:
    """Every simple command of the line, also of code that it passes to other shells; raises ToolError if it cannot be parsed."""
    return _read_again(text) if len(text) <= REMEMBERED_LENGTH else _read_last(text)


def _read(text: str) -> Line:
    """Parse repeatedly until the values of all variables are stable; after MAX_ROUNDS they count as unknown."""
    values: dict[str, set[str]] = {}
    for _ in range(MAX_ROUNDS):
        reader = _Reader(values)
        reader.read_all(text)
        if reader.given == values:
            return reader.line()
        values = reader.given
    reader = _Reader({name: {UNKNOWN} for name in values})
    reader.read_all(text)
    return reader.line()


# Several rules read the same line one after the other. Of long ones only the last is cached, so that the memory stays small.
_read_again = lru_cache(maxsize=64)(_read)
_read_last = lru_cache(maxsize=1)(_read)


class _Reader:
    """Collects the commands of one line; the limits apply to the whole line, nested commands included."""

    def __init__(self, values: Values) -> None:
        self.found: list[Command] = []
        self.unclear: dict[str, None] = {}
        self.values = values
        self.given: dict[str, set[str]] = {}
        self.bodies: list[str] = []
        self.guesses = 0

    def line(self) -> Line:
        return Line(commands=tuple(self.found), unclear=tuple(self.unclear))

    def read_all(self, text: str) -> None:
        """Parse the line; a here-document is also parsed as code if the line has a shell that may read it."""
        self.read(text, depth=0)
        index = INDEX.search(text)
        if index and ("$(" in text[index.end() :] or "`" in text[index.end() :]):
            self.unclear.setdefault("a command in an index")
        if any(command.name in SHELLS | WRAPPERS for command in self.found):
            for body in self.bodies:
                self._read_guess(body, depth=1, sure=False)

    def read(self, text: str, *, depth: int, guessed: bool = False) -> None:
        if depth > MAX_DEPTH:
            raise _too_deep()
        _check(text)
        _Scan(self, text, depth=depth, guessed=guessed).read()

    def add(self, command: Command, *, depth: int) -> None:
        """Collect a command, and the commands that it runs."""
        self._keep(command)
        for assignment in command.assignments:
            self.given.setdefault(assignment.name, set()).update(assignment.value.outlines)
        if command.name in SETS_VARIABLES:
            self.forget(word.text for word in command.arguments)
        for word in command.arguments if command.name in DECLARES else ():
            name, equals, _ = word.text.partition("=")
            if equals:
                self.given.setdefault(name, set()).update(outline.partition("=")[2] for outline in word.outlines)
        if command.name in SHELLS:
            self._read_shell_code(command, depth=depth)
        elif _runs_words(command):
            self._guess(command, depth=depth)

    def _keep(self, command: Command) -> None:
        if len(self.found) >= MAX_COMMANDS:
            raise unreadable(f"it holds more than {MAX_COMMANDS} commands")
        if command.words and command.words[0].computed and BRACE_LIST.search(command.words[0].text):
            raise unreadable("a list in braces stands where a command was expected")
        spoken = (*command.words, *(assignment.value for assignment in command.assignments))
        self.guesses += sum(len(word.outlines) - 1 for word in spoken)
        if self.guesses > MAX_GUESSES:
            raise unreadable(f"its variables can come to more than {MAX_GUESSES} words")
        self.found.append(command)

    def forget(self, names: Iterable[str]) -> None:
        """Mark the values of these variables as unknown."""
        for name in names:
            self.given.setdefault(name.partition("[")[0], set()).add(UNKNOWN)

    def _read_shell_code(self, command: Command, *, depth: int) -> None:
        """Parse the code of `sh -c code`; words after it are data, and the content of a script file is not known."""
        words = [word.text for word in command.arguments]
        position = next((number for number, text in enumerate(words) if SHELL_CODE_OPTION.fullmatch(text)), len(words))
        while position < len(words) and words[position].startswith(("-", "+")):
            position += 2 if words[position].endswith(("o", "O")) else 1
        if position < len(words):
            self._read_guess(words[position], depth=depth + 1, sure=True)

    def _guess(self, command: Command, *, depth: int) -> None:
        """Parse the arguments of a command that runs them: a command may begin at each word, and a word may be code."""
        words = command.words
        starts = [
            position
            for position, word in enumerate(words)
            if position and not word.text.startswith("-") and not ASSIGNMENT.match(word.text)
        ]
        if sum(posixpath.basename(words[position].text) in WRAPPERS for position in starts) > MAX_DEPTH:
            raise _too_deep()
        given = (unknown(),) if command.name in {"xargs", "parallel"} else ()
        for position in starts[:MAX_GUESSED]:
            ends = (end for end in range(position, len(words)) if words[end].text in ENDS_GUESS)
            inner = words[position : next(ends, len(words))]
            if inner:
                self._keep(replace(command, words=(*inner, *given), assignments=(), guessed=True))
        code = [" ".join(word.text for word in command.arguments)] if command.name in CODE_AS_WORDS else []
        for word in command.arguments:
            if SHELL_LETTERS.search(word.text):
                code += [word.text, *(word.text[match.end() :] for match in [CODE_PREFIX.match(word.text)] if match)]
        for text in dict.fromkeys(code):
            self._read_guess(text, depth=depth + 1, sure=command.name == "eval")

    def _read_guess(self, text: str, *, depth: int, sure: bool) -> None:
        """Parse a text that may be code; raises ToolError only if it is `sure` to be code and cannot be parsed."""
        before, unclear = len(self.found), dict(self.unclear)
        try:
            self.read(text, depth=depth, guessed=True)
        except ToolError:
            if sure or len(self.found) >= MAX_COMMANDS or depth > MAX_DEPTH:
                raise
            del self.found[before:]
        self.unclear = unclear


class _Scan:
    """Scans one text from left to right; nested commands have their own scan."""

    def __init__(self, reader: _Reader, text: str, *, depth: int, guessed: bool, start: int = 0) -> None:
        self.reader = reader
        self.text = text
        self.depth = depth
        self.guessed = guessed
        self.position = start
        self.groups = 0
        self.heredocs: list[tuple[str, bool, bool]] = []
        self.piped = False
        self._begin()

    def _begin(self) -> None:
        self.words: list[Word] = []
        self.assignments: list[Assignment] = []
        self.redirections: list[Redirection] = []

    def read(self, end: str = "") -> None:
        """Parse commands up to the closing parenthesis, or the end of the text."""
        while True:
            self.position = _match(BLANKS, self.text, self.position).end()
            if self.position >= len(self.text):
                break
            letter = self.text[self.position]
            if letter == ")" and end and not self.groups:
                self.position += 1
                self._finish()
                return
            self._step(letter)
        if end or self.heredocs or self.groups:
            raise unreadable("it ends before it is complete")
        self._finish()

    def _step(self, letter: str) -> None:
        separator = SEPARATOR.match(self.text, self.position)
        redirection = REDIRECTION.match(self.text, self.position)
        if letter == "\n":
            self.position += 1
            self._end()
            self._read_heredocs()
        elif letter == "#":
            end = self.text.find("\n", self.position)
            self.position = len(self.text) if end < 0 else end
        elif separator:
            self.position = separator.end()
            self._end()
            self.piped = self.piped or separator[0] in {"|", "|&"}
        elif letter == "(":
            self._open()
        elif letter == ")":
            self._close()
        elif redirection:
            self.position = redirection.end()
            self._redirect(redirection[1])
        else:
            self._add_word()

    def _open(self) -> None:
        function = FUNCTION.match(self.text, self.position)
        if self.words and function:
            self._doubt("a function")
            self.position = function.end()
            self._begin()
            return
        if not self._is_start() or self.assignments or self.text.startswith("((", self.position):
            self._doubt("a parenthesis inside a command")
        self.position += 1
        self.groups += 1
        self._end()

    def _close(self) -> None:
        self.position += 1
        self._end()
        if self.groups:
            self.groups -= 1
        else:
            self._doubt("a closing parenthesis")

    # Commands

    def _is_start(self) -> bool:
        return all(word.text in LEADS for word in self.words)

    def _finish(self) -> None:
        if self.heredocs:
            raise unreadable("a here-document has no end")
        self._end()

    def _end(self) -> None:
        """Add the command that was read so far."""
        words, assignments = self.words, self.assignments
        redirections = tuple(self.redirections)
        self._begin()
        while words and words[0].text in LEADS:
            if words.pop(0).text == "function":
                self._doubt("a function")
                del words[:1]
        if words and words[0].text in NOT_IN_SH:
            self._doubt(words[0].text)
        if words and words[0].text == "case":
            words = []
        if words and words[0].text in LOOPS:
            assignments += self._loop_values(words)
            words = []
        if words or assignments or redirections:
            command = Command(
                words=tuple(words),
                assignments=tuple(assignments),
                redirections=redirections,
                piped=self.piped,
                guessed=self.guessed,
            )
            self.reader.add(command, depth=self.depth)

    def _loop_values(self, words: list[Word]) -> list[Assignment]:
        """The values that `for name in …` assigns; without a list they are unknown."""
        if len(words) < 2:  # noqa: PLR2004  `for` and a name
            self._doubt("for ((…))")
            return []
        values = words[3:] if len(words) > 2 else [unknown()]  # noqa: PLR2004  `for name in …`
        return [Assignment(name=words[1].text, value=value) for value in values]

    def _redirect(self, operator: str) -> None:
        self.position = _match(BLANKS, self.text, self.position).end()
        start = self.position
        target = self._word()
        if operator in {"<<", "<<-"}:
            written = self.text[start : self.position]
            delimiter = re.sub(r"[\"'\\]", "", written)
            if not re.fullmatch(r"\w+", delimiter):
                raise unreadable(f"the here-document {delimiter!r} has no plain name")
            self.heredocs.append((delimiter, operator == "<<-", delimiter != written))
            self.redirections.append(Redirection(operator=operator, target=plain("")))
            return
        if operator == "<<<":
            self._doubt("<<<")
            self.reader.bodies.append(target.text)
        if operator not in {">&", "<&"} or not re.fullmatch(r"\d+-?|-", target.text):
            self.redirections.append(Redirection(operator=operator, target=target))

    def _read_heredocs(self) -> None:
        for delimiter, strips, quoted in self.heredocs:
            lines: list[str] = []
            while True:
                if self.position >= len(self.text):
                    raise unreadable(f"the here-document {delimiter!r} has no end")
                line, _, _ = self.text[self.position :].partition("\n")
                self.position += len(line) + 1
                if (line.lstrip("\t") if strips else line) == delimiter:
                    break
                lines.append(line)
            self.reader.bodies.append("\n".join(lines))
            # A backslash joins lines, and shells differ in whether the joined line can be the end.
            joined = self.reader.bodies[-1].replace("\\\n", "").replace("\t" if strips else "", "")
            if not quoted and (joined.endswith("\\") or delimiter in joined.split("\n")):
                raise unreadable(f"the here-document {delimiter!r} has no plain end")
            if not quoted:
                self._inner(self.reader.bodies[-1])
        self.heredocs = []

    # Words

    def _add_word(self) -> None:
        assigned = ASSIGNMENT.match(self.text, self.position) if self._is_start() else None
        subscript = SUBSCRIPT.match(self.text, self.position) if self._is_start() else None
        if subscript:
            self.reader.forget([subscript[1]])
        if not assigned:
            self.words.append(self._word())
            return
        self.position = assigned.end()
        if assigned[2] == "+=":
            self.reader.forget([assigned[1]])
        self.assignments.append(Assignment(name=assigned[1], value=self._word()))

    def _word(self) -> Word:
        """The word that begins here, which may be empty."""
        draft, text = _Draft(), self.text
        bracket = BRACKET.match(text, self.position)
        if bracket:
            self.position = bracket.end()
            return plain(bracket[0])
        while self.position < len(text):
            letter = text[self.position]
            run = PLAIN.match(text, self.position)
            if run:
                self.position = run.end()
                draft.literal(run[0])
            elif letter in "*?[":
                self.position += 1
                draft.add(letter, (GLOB,))
            elif letter in "{}":
                self.position += 1
                draft.add(letter, (OPEN_BRACE if letter == "{" else CLOSE_BRACE,))
            elif text.startswith(("<(", ">("), self.position):
                self._doubt("<(…)")
                self.position += 2
                self._nested(piped=letter == ">")
                draft.expansion(text[self.position - 1 : self.position])
            elif not self._quoting(letter, draft):
                break
        return draft.finish()

    def _quoting(self, letter: str, draft: _Draft) -> bool:
        """Parse a quote, a backslash or an expansion; False if none begins here."""
        if letter == "'":
            draft.literal(self._until("'"))
        elif letter == '"':
            self.position += 1
            self._quoted('"', draft)
        elif letter == "\\":
            draft.literal(self.text[self.position + 1 : self.position + 2].replace("\n", ""))
            self.position += 2
        elif letter == "$":
            self._dollar(draft, quoted=False)
        elif letter == "`":
            self._backticks(draft, quoted=False)
        else:
            return False
        return True

    def _until(self, closing: str) -> str:
        end = self.text.find(closing, self.position + 1)
        if end < 0:
            raise unreadable(f"a {closing} is not closed")
        found = self.text[self.position + 1 : end]
        self.position = end + 1
        return found

    def _quoted(self, closing: str, draft: _Draft) -> None:
        """Parse up to the closing character as between double quotes; `${…}` may contain further quotes."""
        while self.position < len(self.text):
            letter = self.text[self.position]
            if letter == closing:
                self.position += 1
                return
            if letter == "\\":
                escaped = self.text[self.position + 1 : self.position + 2]
                draft.literal(escaped.replace("\n", "") if escaped in '$`"\\\n' else f"\\{escaped}")
                self.position += 2
            elif letter == "$":
                self._dollar(draft, quoted=True)
            elif letter == "`":
                self._backticks(draft, quoted=True)
            elif closing == "}" and letter in "'\"":
                self._quoting(letter, draft)
            else:
                self.position += 1
                draft.literal(letter)
        if closing:
            raise unreadable(f"a {closing} is not closed")

    def _dollar(self, draft: _Draft, *, quoted: bool) -> None:
        text, start = self.text, self.position
        self.position += 1
        self._join_lines()
        name = NAME.match(text, self.position) or BRACED_NAME.match(text, self.position)
        following = text[self.position : self.position + 1]
        if name:
            self.position = name.end()
            values = self._values(name[1] if name.re is BRACED_NAME else name[0])
            is_joined = name.re is NAME and self._join_lines()  # the name may go on in the next line
            draft.expansion(name[0], (UNKNOWN,) if is_joined else values, quoted=quoted)
        elif following == "(":
            self.position += 1
            is_number = self._arithmetic()
            if not is_number:
                self._nested()
            draft.expansion(text[start : self.position], ("0",) if is_number else (UNKNOWN,), quoted=quoted)
        elif following == "{":
            if not CLEAR_EXPANSION.match(text, self.position):
                self._doubt("an expansion that may calculate, assign or run something")
            self.position += 1
            self._deepen()
            self._quoted("}", _Draft())
            self.depth -= 1
            draft.expansion(text[start : self.position], quoted=quoted)
        elif following in {"'", '"', "["} and following and not quoted:
            self._doubt(f"${following}")
            if following == "'":
                self._ansi(draft)
        elif following and following in "?#$!@*-0123456789":
            self.position += 1
            values = ("0",) if following in NUMBERS else (UNKNOWN,)
            draft.expansion(text[start : self.position], values, quoted=quoted and following != "@")
        else:
            draft.literal("$")

    def _join_lines(self) -> bool:
        """Skip backslashes before line ends, which a shell removes before it reads an expansion; True if there are any."""
        start, self.position = self.position, _match(JOINS, self.text, self.position).end()
        if self.position > start:
            self._doubt("a line that is joined in an expansion")
        return self.position > start

    def _ansi(self, draft: _Draft) -> None:
        end = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.position)
        if end is None:
            raise unreadable("a ' is not closed")
        self.position = end.end()
        # Python decodes only some of bash's escapes, and warns about others.
        if not SHARED_ESCAPES.fullmatch(end[1]):
            draft.expansion(end[1])
            return
        try:
            draft.literal(decode(end[1], "unicode_escape"))
        except ValueError:
            draft.expansion(end[1])

    def _arithmetic(self) -> bool:
        """Parse `$((…))` and the commands in it; False if it is a subshell in a command substitution."""
        if not self.text.startswith("(", self.position):
            return False
        depth, position = 0, self.position
        for position in range(self.position, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[position], 0)
            if depth == 0:
                break
        if not self.text.startswith("))", position):
            self._doubt("$((…)")
            return False
        inner = self.text[self.position + 1 : position]
        if NAME.search(inner):
            self._doubt("a variable in a calculation")  # its value may have an index with commands, which bash runs
        self.position = position + 2
        self._inner(inner)
        return True

    def _backticks(self, draft: _Draft, *, quoted: bool) -> None:
        end = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.position)
        if end is None:
            raise unreadable("a ` is not closed")
        self.position = end.end()
        self.reader.read(re.sub(r"\\([$`\\])", r"\1", end[1]), depth=self.depth + 1, guessed=self.guessed)
        draft.expansion("" if end[0] == "``" else end[0], ("",) if end[0] == "``" else (UNKNOWN,), quoted=quoted)

    def _nested(self, *, piped: bool = False) -> None:
        """Parse the commands up to the closing parenthesis."""
        if self.depth >= MAX_DEPTH:
            raise _too_deep()
        scan = _Scan(self.reader, self.text, depth=self.depth + 1, guessed=self.guessed, start=self.position)
        scan.piped = piped or self.piped
        scan.read(")")
        self.position = scan.position

    def _inner(self, text: str) -> None:
        """Parse the command substitutions in a text that is not a command itself."""
        scan = _Scan(self.reader, text, depth=self.depth, guessed=self.guessed)
        scan._deepen()
        scan._quoted("", _Draft())

    def _deepen(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _too_deep()

    def _values(self, name: str) -> tuple[str, ...]:
        """All possible values of a variable, whole and word by word, because the shell splits expansions."""
        if name not in self.reader.values:
            return (PRESET.get(name, UNKNOWN),)
        whole = {re.sub(r"[*?\[]", GLOB, value) for value in self.reader.values[name]}
        return tuple(dict.fromkeys([*sorted(whole), *(part for value in sorted(whole) for part in value.split())]))

    def _doubt(self, what: str) -> None:
        self.reader.unclear.setdefault(what)


class _Draft:
    """A word while it is built."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.values: list[tuple[str, ...]] = []
        self.computed = False
        self.splits = False

    def literal(self, text: str) -> None:
        self.add(text, (text,))

    def expansion(self, spelled: str, values: tuple[str, ...] = (UNKNOWN,), *, quoted: bool = True) -> None:
        self.computed = True
        self.splits = self.splits or (not quoted and any(re.search(rf"[\s{UNKNOWN}]", value) for value in values))
        known = [value for value in values if UNKNOWN not in value and GLOB not in value]
        self.add(known[0] if known else f"${spelled}" if spelled[:1].isalpha() else spelled, values)

    def add(self, said: str, values: tuple[str, ...]) -> None:
        self.said.append(said)
        self.values.append(values)

    def finish(self) -> Word:
        braces = False
        outlines: list[str] = []
        for outline in self._spellings():
            shape, count = outline, 1
            for _ in range(MAX_DEPTH):
                shape, count = BRACES.subn(_expand_braces, shape) if count else (shape, 0)
            shape = UNKNOWN if count and BRACES.search(shape) else shape
            braces = braces or UNKNOWN in shape
            shape = shape.replace(OPEN_BRACE, "{").replace(CLOSE_BRACE, "}")
            outlines.append(BRACKETS.sub(GLOB, shape))
        text = "".join(self.said)
        computed = self.computed or braces
        return Word(text=text, outlines=tuple(dict.fromkeys(outlines)), computed=computed, splits=self.splits)

    def _spellings(self) -> Iterator[str]:
        longest = sum(max(map(len, values)) for values in self.values)
        if longest > MAX_LENGTH or math.prod(map(len, self.values)) > MAX_OUTLINES:
            return iter((UNKNOWN,))
        return ("".join(parts) for parts in product(*self.values))


def _expand_braces(found: re.Match[str]) -> str:
    """Unknown words for a list or a range; other braces are letters, also within a list."""
    return UNKNOWN if "," in found[1] or ".." in found[1] else f"{{{found[1]}}}"


def _runs_words(command: Command) -> bool:
    """Whether the command may run its arguments: a wrapper, or a `find` with an action."""
    if command.name not in WRAPPERS and command.name != "find":
        return False
    return not is_listed(command) or bool(does_more(command))


def _too_deep() -> ToolError:
    return unreadable(f"commands are nested more than {MAX_DEPTH} deep")


def _check(text: str) -> None:
    if CONTROL.search(text):
        raise unreadable("it holds control characters")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise unreadable("it holds a lone surrogate") from None
    if size > MAX_LENGTH:
        raise unreadable(f"it is longer than {MAX_LENGTH} bytes")


def _match(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str]:
    """Match a pattern that always matches, if only the empty text."""
    found = pattern.match(text, position)
    if found is None:
        raise unreadable("it has no words")
    return found
