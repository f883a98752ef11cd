"""Read the simple commands of a command line from its syntax tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from toolcrib.lib.shell.nested_commands import Code, unfold
from toolcrib.lib.shell.words import (
    CONTINUATION,
    UNKNOWN,
    Assignment,
    Command,
    Redirection,
    Speller,
    Word,
    plain,
    unknown,
    unreadable,
)
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Language, Node

MAX_LENGTH = 16_384
MAX_COMMANDS = 500
MAX_DEPTH = 12
MAX_ROUNDS = 4
MAX_GUESSES = 2000
REMEMBERED_LENGTH = 1000

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
BLANK = re.compile(rb"(?:[ \t]|\\\n)*")
HIDDEN_CODE = re.compile(r"(?<!\\)(?:\\\\)*(?:\$\(|`)")
IN_BACKTICKS = re.compile(r"\\([$`\\])")
COMMANDS = frozenset({"command", "declaration_command", "unset_command"})
REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
ASSIGNMENTS = frozenset({"variable_assignment", "variable_assignments"})
SPOKEN = frozenset({"word", "number", "string", "raw_string", "concatenation", "simple_expansion", "expansion"})
QUOTED = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end"})
# Where the grammar takes one of these for a command, as after `time`, it reads on at the wrong place.
CONDITIONS = frozenset({"if", "then", "elif", "else", "fi", "case", "esac", "[["})
RESERVED = CONDITIONS | {"{", "}", "function", "for", "select", "while", "until", "do", "done"}
NOT_ONLY_A_CONDITION = frozenset("\n#\\'\"`")
BASH_ALONE = {"((": "", "[[": ": "}  # what stands before the text for a shell that does not know the bracket
SETTERS = frozenset({"read", "mapfile", "readarray", "getopts", "printf", "unset"})
OWN_PROCESS = frozenset({"subshell", "command_substitution", "process_substitution"})


def read_commands(text: str) -> tuple[Command, ...]:
    """Every simple command of the line, those that it hands to other shells included; raises ToolError if it cannot be read."""
    return _read_again(text) if len(text) <= REMEMBERED_LENGTH else _read(text)


def _read(text: str) -> tuple[Command, ...]:
    """Read until every variable is known by all that it is given; one that grows with each reading is unknown."""
    values: dict[str, set[str]] = {}
    for _ in range(MAX_ROUNDS):
        reader = _Reader(values)
        reader.read(Code(plain(text)), _Place(), depth=0)
        if reader.given == values:
            return tuple(reader.found)
        values = reader.given
    reader = _Reader({name: {UNKNOWN} for name in values})
    reader.read(Code(plain(text)), _Place(), depth=0)
    return tuple(reader.found)


# Several rules read the same line one after the other. Only short ones are kept, so that the memory stays small.
_read_again = lru_cache(maxsize=64)(_read)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the line a node stands; `given` is what a statement around it redirects into it."""

    upstream: str = ""
    given: tuple[Redirection, ...] = ()
    functions: frozenset[str] = frozenset()
    forked: bool = False


class _Reader:
    """Collects the commands of one line; the limits hold for the whole of it, however deep a command lies."""

    def __init__(self, values: Mapping[str, set[str]]) -> None:
        self.found: list[Command] = []
        self.variables: dict[str, Word] = {}
        self.values = values
        self.given: dict[str, set[str]] = {}
        self.guesses = 0

    def read(self, code: Code, place: _Place, *, depth: int) -> None:
        """Collect what the code runs."""
        if depth > MAX_DEPTH:
            raise unreadable(f"commands lie more than {MAX_DEPTH} deep in each other")
        if code.word.computed:
            self._keep(Command(words=(unknown(source=code.word.source or code.word.text),)))
        source = _encode(code.word.text)
        _Walk(self, source, depth).follow(_parse(source), place)

    def add(self, command: Command, *, depth: int) -> None:
        """Collect a command and what it runs in its turn."""
        self._keep(command)
        if command.name in SETTERS:
            self.doubt(word.text for word in command.arguments)
        for inner in unfold(command):
            if depth >= MAX_DEPTH:
                raise unreadable(f"commands lie more than {MAX_DEPTH} deep in each other")
            if isinstance(inner, Code):
                place = _Place(upstream=command.upstream, functions=command.functions, forked=command.forked)
                self.read(inner, place, depth=depth + 1)
            else:
                self.add(inner, depth=depth + 1)

    def assign(self, assignments: Iterable[Assignment]) -> None:
        """Remember values, so that a later `$name` can be guessed."""
        for assignment in assignments:
            self.variables[assignment.name] = assignment.value
            self.given.setdefault(assignment.name, set()).update(assignment.value.outlines)

    def doubt(self, names: Iterable[str]) -> None:
        """Remember that the values of these variables are unknown."""
        for name in names:
            self.given.setdefault(name.partition("[")[0], set()).add(UNKNOWN)

    def _keep(self, command: Command) -> None:
        if command.words and command.words[0].text in RESERVED:
            raise unreadable(f"{command.words[0].text!r} stands where a command was expected")
        if len(self.found) >= MAX_COMMANDS:
            raise unreadable(f"it holds more than {MAX_COMMANDS} commands")
        spoken = (*command.words, *(assignment.value for assignment in command.assignments))
        self.guesses += sum(len(word.guesses) - 1 for word in spoken if word.guesses)
        if self.guesses > MAX_GUESSES:
            raise unreadable(f"its variables can come to more than {MAX_GUESSES} words")
        self.found.append(command)


class _Walk:
    """Goes through one tree in the order of the text, without recursion: lists of commands nest as deep as they are long."""

    def __init__(self, reader: _Reader, code: bytes, depth: int) -> None:
        self.reader = reader
        self.code = code
        self.depth = depth
        self.speller = Speller(code, reader.variables, reader.values)

    def follow(self, root: Node, place: _Place) -> None:
        waiting = [(root, place)]
        while waiting:
            node, place = waiting.pop()
            waiting.extend(reversed(list(self._visit(node, place))))

    def _visit(self, node: Node, place: _Place) -> Iterator[tuple[Node, _Place]]:
        """Collect what this node says, and give the nodes to look at next."""
        if not node.children:
            self._check_leaf(node, place)
            return
        if node.type in COMMANDS:
            self._add_command(node, (), place)
        elif node.type == "redirected_statement":
            yield from self._visit_redirected(node, place)
            return
        elif node.type in ASSIGNMENTS or node.type == "for_statement":
            self._add_assignments(node)
        elif node.type == "file_redirect" and node.parent is not None and node.parent.type not in COMMANDS:
            self.reader.add(Command(redirections=(self._redirection(node),)), depth=self.depth)
        elif node.type == "heredoc_redirect":
            self._check_heredoc(node)
        elif node.children[0].type in BASH_ALONE:
            self._read_as_plain_shell(node, place)
        elif self._is_backticks(node):
            self._read_backticks(node, place)
            return
        yield from self._children(node, place)

    def _visit_redirected(self, node: Node, place: _Place) -> Iterator[tuple[Node, _Place]]:
        redirections = [child for child in node.children if child.type in REDIRECTIONS]
        body = node.children[0]
        if body.type in COMMANDS:
            self._add_command(body, redirections, place)
            yield from self._children(body, place)
        else:
            if any(len(self._redirect_words(child)) > 1 for child in redirections):
                raise unreadable("words stand behind a redirection of something that takes none")
            targets = tuple(self._redirection(child) for child in redirections)
            self.reader.add(Command(redirections=targets), depth=self.depth)
            if body.type not in REDIRECTIONS:
                given = tuple(target for target in targets if target.operator.startswith("<"))
                yield body, replace(place, given=place.given + given)
        for child in redirections:
            if child.type == "heredoc_redirect":
                self._check_heredoc(child)
            yield from self._children(child, place)

    def _children(self, node: Node, place: _Place) -> Iterator[tuple[Node, _Place]]:
        if node.type == "function_definition":
            place = replace(place, functions=place.functions | {self.speller.text(_first(node, "word"))})
        if node.type in OWN_PROCESS:
            place = replace(place, forked=True)
        if node.type == "process_substitution" and node.children[0].type == ">(":
            place = replace(place, upstream=self.code.decode())
        if node.type == "pipeline" and len(node.children) > MAX_COMMANDS:
            raise unreadable(f"a pipeline has more than {MAX_COMMANDS // 2} stages")
        following_types = [*(child.type for child in node.children[1:]), ""]
        for position, (child, following) in enumerate(zip(node.children, following_types, strict=True)):
            yield child, self._place_of(node, position, replace(place, forked=True) if following == "&" else place)

    def _place_of(self, node: Node, position: int, place: _Place) -> _Place:
        """A stage of a pipeline reads what stands before it; after a here-document that is the whole statement."""
        if node.type != "pipeline":
            return place
        first = node
        if node.parent is not None and node.parent.type == "heredoc_redirect":
            first = node.parent.parent or node
        before = self.code[first.start_byte : node.children[position].start_byte].decode()
        return replace(place, upstream=f"{place.upstream} {before}" if before else place.upstream, forked=True)

    # What the nodes say

    def _add_command(self, node: Node, around: Sequence[Node], place: _Place) -> None:
        self._check_line((*node.children, *around))
        inside = [child for child in node.children if child.type in REDIRECTIONS]
        assigned = [child for child in node.children if child.type == "variable_assignment"]
        spoken = [child for child in node.children if child not in inside and child not in assigned]
        trailing = self._trailing_words((*inside, *around))
        assignments = tuple(found for child in assigned for found in self._assignments(child))
        command = Command(
            words=(*(self.speller.word(nodes) for nodes in self._words(spoken)), *trailing),
            assignments=assignments,
            redirections=(*place.given, *(self._redirection(child) for child in (*inside, *around))),
            upstream=place.upstream,
            functions=place.functions,
            forked=place.forked,
        )
        self.reader.assign(assignments)
        self.reader.add(command, depth=self.depth)

    def _add_assignments(self, node: Node) -> None:
        if node.type == "variable_assignments" or _stands_in_command(node):
            return
        found = tuple(self._assignments(node))
        self.reader.assign(found)
        self.reader.add(Command(assignments=found), depth=self.depth)

    def _assignments(self, node: Node) -> Iterator[Assignment]:
        """The values of an assignment or of a loop; an array gives one for each element."""
        name = _first(node, "variable_name") if node.type == "for_statement" else node.children[0]
        if node.type == "variable_assignment":
            self.speller.check_touching(node.children)
            if name.type == "subscript" or node.children[1].type == "+=":
                self.reader.doubt([self.speller.text(name)])
        rest = [child for child in node.children if child.start_byte >= name.end_byte]
        values = [child for child in rest if child.is_named and child.type != "do_group"]
        elements = [item for value in values for item in (value.children[1:-1] if value.type == "array" else [value])]
        for nodes in self._words(elements):
            yield Assignment(name=self.speller.text(name), value=self.speller.word(nodes))

    def _redirection(self, node: Node) -> Redirection:
        operator = next(child.type for child in node.children if not child.is_named)
        if node.type == "heredoc_redirect":
            return Redirection(operator=operator, target=self._heredoc_body(node))
        words = self._redirect_words(node)
        return Redirection(operator=operator, target=words[0] if words else plain(""))

    def _redirect_words(self, node: Node) -> list[Word]:
        """The target, and after it the words of the command that the grammar counts to the redirection."""
        if node.type == "heredoc_redirect":
            inner = [child for child in node.children if child.type in REDIRECTIONS]
            spoken = [child for child in node.children if child.type in SPOKEN]
            words = [self.speller.word(nodes) for nodes in self._words(spoken)]
            return [plain(""), *words, *(word for child in inner for word in self._redirect_words(child)[1:])]
        self._check_line(node.children)
        spoken = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        return [self.speller.word(nodes) for nodes in self._words(spoken)]

    def _trailing_words(self, redirections: Sequence[Node]) -> list[Word]:
        """The words behind redirections; behind `&>` a shell that does not know it begins another command."""
        found: list[Word] = []
        splits = False
        for child in redirections:
            splits = splits or any(mark.type.startswith("&>") for mark in child.children)
            words = self._redirect_words(child)[1:]
            if splits and words:
                raise unreadable("a word stands behind '&>'")
            found += words
        return found

    def _heredoc_body(self, node: Node) -> Word:
        body = _first(node, "heredoc_body")
        text = self.speller.text(body)
        if body.children and any(child.type != "heredoc_content" for child in body.children):
            return replace(unknown(source=text), text=text)
        return plain(text)

    def _words(self, nodes: Iterable[Node]) -> Iterator[list[Node]]:
        """Nodes that touch are one word; a backslash before a line's end joins what it separates."""
        group: list[Node] = []
        for node in nodes:
            between = self.code[group[-1].end_byte : node.start_byte] if group else b""
            if group and CONTINUATION.fullmatch(between) is None:
                yield group
                group = []
            group.append(node)
        if group:
            yield group

    # Where the grammar and the shell might not agree

    def _check_line(self, nodes: Sequence[Node]) -> None:
        """Refuse a command over several lines that the shell would take for several commands."""
        for node, following in pairwise(nodes):
            if BLANK.fullmatch(self.code[node.end_byte : following.start_byte]) is None:
                raise unreadable("a line begins where a word was expected")

    def _check_leaf(self, node: Node, place: _Place) -> None:
        """Read the code that the grammar took for text, as in `${name#$(code)}`."""
        text = self.speller.text(node)
        if not node.is_named or node.type in QUOTED or HIDDEN_CODE.search(text) is None:
            return
        if node.type == "heredoc_body" and _is_quoted_heredoc(node):
            return
        self.reader.read(Code(plain(text)), place, depth=self.depth + 1)

    def _check_heredoc(self, node: Node) -> None:
        """Refuse a here-document that might end on another line than the grammar believes."""
        start, end = _first(node, "heredoc_start"), _first(node, "heredoc_end")
        delimiter = re.sub(r"[\"'\\]", "", self.speller.text(start))
        body = self.code[_first(node, "heredoc_body").start_byte : end.start_byte].decode()
        earlier = [line.lstrip("\t") for line in body.split("\n")[:-1]]
        last = self.code[end.start_byte :].decode().partition("\n")[0]
        if not re.fullmatch(r"\w+", delimiter) or last != delimiter or delimiter in earlier:
            raise unreadable(f"the here-document {delimiter!r} has no plain end")

    def _read_as_plain_shell(self, node: Node, place: _Place) -> None:
        """Read `(( … ))` and `[[ … ]]` a second time, as a shell does that does not know them: as commands."""
        other = _Reader(self.reader.values)
        code = BASH_ALONE[node.children[0].type] + self.speller.text(node)[2:-2]
        try:
            other.read(Code(plain(code)), place, depth=self.depth + 1)
        except ToolError:
            if not NOT_ONLY_A_CONDITION.isdisjoint(code):
                raise
            return  # a plain condition, which such a shell cannot read either
        for command in other.found:
            if command.words and command.words[0].certain and command.name != ":":
                self.reader.add(command, depth=self.depth)

    def _is_backticks(self, node: Node) -> bool:
        return node.type == "command_substitution" and node.children[0].type == "`"

    def _read_backticks(self, node: Node, place: _Place) -> None:
        """Read the code between backticks, in which a backslash hides the inner ones from the outer shell."""
        code = IN_BACKTICKS.sub(r"\1", self.speller.text(node)[1:-1])
        self.reader.read(Code(plain(code)), replace(place, forked=True), depth=self.depth + 1)


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _parse(code: bytes) -> Node:
    from tree_sitter import Parser

    root = Parser(_language()).parse(code).root_node
    if root.has_error:
        raise unreadable("it is no complete shell code, or a form that is not understood")
    return root


def _encode(text: str) -> bytes:
    if CONTROL.search(text):
        raise unreadable("it holds control characters")
    try:
        code = text.encode()
    except UnicodeEncodeError:
        raise unreadable("it holds half of a character") from None
    if len(code) > MAX_LENGTH:
        raise unreadable(f"it is longer than {MAX_LENGTH} bytes")
    return code


def _first(node: Node, kind: str) -> Node:
    found = next((child for child in node.children if child.type == kind), None)
    if found is None:
        raise unreadable(f"a {node.type.replace('_', ' ')} without its {kind.replace('_', ' ')}")
    return found


def _stands_in_command(node: Node) -> bool:
    return node.parent is not None and node.parent.type in COMMANDS


def _is_quoted_heredoc(body: Node) -> bool:
    parent = body.parent
    start = None if parent is None else _first(parent, "heredoc_start")
    return start is not None and start.text is not None and any(mark in start.text for mark in (b"'", b'"', b"\\"))
