"""The grants of capabilities to tools: the lines of `[grants]`, each for one tool, one bundle or every tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.infra.settings import FILE_NAME, MapTable, read_word_set, setting
from toolcrib.lib.names import (
    HOST,
    action_of,
    did_you_mean,
    function_name,
    is_capability,
    near_misses,
    read_address,
    slug_of,
)
from toolcrib.model.errors import Cure, Kind, SettingsError, ToolError
from toolcrib.model.tool import is_document, slug_problem, version_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from toolcrib.lib.names import Address
    from toolcrib.model.tool import Entry, Tool

EVERY = "*"
MAX_WORD = 400
# The capabilities that the sandbox enforces or that built-in tools require; authors of tools may define others.
KNOWN = ("fs.read", "fs.write", "net.http", "net.postgresql", "rye.execute", "shell.execute")
# Capabilities that should not be granted to every tool: that opens the machine or the network to tools added later, too.
WIDE = ("net.http", "shell.execute")
# Capabilities that stored tools have without a grant, because the list of allowed hosts restricts them.
BOUNDED = frozenset({"net.http", "net.postgresql"})
_NAMES = "write a name, bundle/name, bundle/* for every tool of a bundle, or * for every tool"


def read_grant(name: str, value: object) -> frozenset[str]:
    """Read the capabilities of one line: each a name, everything below a dot (`net.*`), or all (`*`)."""
    found = read_word_set(name, value)
    for word in sorted(found):
        spelled = f"{word[:-1]}all" if word.endswith(".*") else word
        if word != EVERY and not is_capability(spelled):
            raise ValueError(f"{name}: {word!r:.80} is not a capability; {_how_to_write(word)}")
    if not found and name != GrantsSettings.name_of(EVERY):
        raise ValueError(f'{name} = [] takes nothing away; remove it, and narrow "*", which counts for every tool')
    return found


def _how_to_write(word: str) -> str:
    below = [known for known in KNOWN if known.startswith(f"{word.rstrip('.*')}.")]
    if below:
        return f"write {word.rstrip('.*')}.* for all of them, or {' or '.join(below)}"
    return did_you_mean(word, KNOWN) or "write dotted names such as fs.read, or net.* for everything below net"


class GrantsSettings(MapTable, name="grants"):
    """Capabilities of tools. A tool has those of all lines that match it: `*`, its bundle, and the tool itself."""

    example = '"NAME" = ["shell.execute"]'

    lines: Mapping[str, frozenset[str]] = setting(
        default={EVERY: frozenset({"fs.*"})},
        read=read_grant,  # type: ignore[arg-type]  # a MapTable calls it for each line
        adds=True,
        summary="capabilities, each by name, as everything below a dot (`net.*`), or all of them (`*`); the key says for which tools: "
        "`name` for the tool of the project that is called by it, `bundle/name`, either with `@version`, `bundle/*`, or `*` for every tool",
    )

    @classmethod
    def check_word(cls, word: str) -> None:
        """Raise ValueError for a key that cannot be the name of a tool or bundle."""
        if len(word) > MAX_WORD:
            raise ValueError(f"this is not a name of a tool; {_NAMES}")
        if word == EVERY:
            return
        bundle, name, version = read_address(word)
        if is_capability(word) and word in KNOWN:
            raise ValueError(f'this is a capability; the name of the tool comes first: "NAME" = ["{word}"]')
        if (bundle is None and "/" in word) or (version is None and "@" in word) or "*" in (bundle or ""):
            raise ValueError(f"no tool is called so; {_NAMES}")
        if name == EVERY and bundle is not None and version is None:
            return
        if "*" in word:
            raise ValueError(f"a name is not matched by parts of it; {_NAMES}")
        whole, dot, action = name.partition(".")
        problem = slug_problem(slug_of(whole)) or (dot and slug_problem(slug_of(action)))
        problem = problem or ("" if version is None else version_problem(version))
        if problem:
            raise ValueError(f"no tool is called so: {problem}; {_NAMES}")


class ToolWords:
    """The words with which the operator names tools in grants, matched to tools.

    `bundle/name` and `bundle/*` mean the tools of exactly that bundle. A name alone means one tool: `means` says whether it
    is this one. All of them except `bundle/*` may end in `@version`.
    """

    def __init__(self, words: Iterable[str], means: Callable[[str, Tool], bool]) -> None:
        self._means = means
        self._words: dict[str, list[tuple[str, Address]]] = {}
        for word in words:
            address = read_address(word)
            key = word if address.name == EVERY else slug_of(address.name)
            self._words.setdefault(key, []).append((word, address))

    def of(self, tool: Tool) -> list[str]:
        """The words that match the tool, the widest first."""
        if not self._words:
            return []
        bundle = tool.bundle or HOST
        wide = [word for key in (EVERY, f"{bundle}/{EVERY}") for word, _ in self._words.get(key, ())]
        named = [
            (address.version is not None, address.bundle is not None, word)
            for name in _names_of(tool)
            for word, address in self._words.get(name, ())
            if self._is_of(address, bundle, tool)
        ]
        return [*wide, *(word for *_, word in sorted(named))]

    def own_word(self, tool: Tool) -> str:
        """The shortest word that matches only this tool."""
        return tool.name if self._means(tool.name, tool) else f"{tool.bundle or HOST}/{tool.name}"

    def _is_of(self, address: Address, bundle: str, tool: Tool) -> bool:
        if address.version not in (None, tool.version):
            return False
        return self._means(address.name, tool) if address.bundle is None else address.bundle == bundle


class Grants:
    """The lines of the operator's grants; `where` gives the place of a line in the settings.

    `means` says whether a name without a bundle means a tool; without it, such a line matches none.
    """

    def __init__(
        self,
        lines: Mapping[str, frozenset[str]] | None = None,
        where: Callable[[str], str] | None = None,
        means: Callable[[str, Tool], bool] = lambda *_: False,
    ) -> None:
        self.lines = GrantsSettings().lines if lines is None else lines
        self.where = where or (lambda name: f"the default of {name}")
        self._words = ToolWords(self.lines, means)
        self._bare = [word for word in self.lines if "/" not in word and word != EVERY]

    def missing(self, tool: Tool, required: frozenset[str] | None = None) -> frozenset[str]:
        """The capabilities that the tool requires, or `required` instead, and that no line grants it."""
        required = needed_grants(tool) if required is None else required
        if not required:
            return required
        granted = frozenset(capability for word in self.words_for(tool) for capability in self.lines[word])
        return missing_grants(required, granted)

    def words_for(self, tool: Tool) -> list[str]:
        """The keys of the lines that match the tool, the widest first."""
        return self._words.of(tool)

    def describe(self, tool: Tool) -> str:
        """Which line allows each capability that the tool requires."""
        found = [f"{capability} by {self._line_for(tool, capability)}" for capability in sorted(needed_grants(tool))]
        found += [
            f"{capability} to the hosts that are listed for it, which needs no grant"
            for capability in sorted(tool.requires - needed_grants(tool))
        ]
        return "; ".join(found)

    def place(self, tool: Tool) -> str:
        """The place in the settings of the narrowest line that matches the tool."""
        return self.where(GrantsSettings.name_of(self.words_for(tool)[-1]))

    def cure(self, tool: Tool, missing: Collection[str]) -> Cure:
        """The line to write, and the option that grants it for one call."""
        listed = ", ".join(_quote(capability) for capability in sorted(missing))
        written = next((word for word in reversed(self.words_for(tool)) if not word.endswith(EVERY)), "")
        own = self._words.own_word(tool)
        line = f"add {listed} to {_quote(written)}" if written else f"write {_quote(own)} = [{listed}]"
        # A capability alone is granted to the name that is called, which may mean another tool.
        named = "" if own == tool.name else f"{own}:"
        cure = " ".join(f"--grant {named}{capability}" for capability in sorted(missing))
        line = f"{line} under [grants] in {FILE_NAME}"
        return Cure(f"{line}, or for one call: {cure}", "ask the operator to grant it", administrator=line)

    def refusal(self, tool: Tool, missing: Collection[str]) -> ToolError:
        """The error for a tool that lacks grants."""
        reason = f"{tool.name} requires {', '.join(sorted(missing))}, which is not granted"
        cure, details = self.cure(tool, missing), {"missing": sorted(missing)}
        return ToolError(Kind.CAPABILITY_MISSING, reason, cure=cure, details=details)

    def check(self, entries: Callable[[], Iterable[Entry]]) -> None:
        """Raise SettingsError for a probable typo: a capability similar to one of ours, and required by no tool."""
        near = dict(near_misses(self._named() - set(KNOWN), KNOWN))
        required = {name for entry in entries() for name in entry.tool.requires} if near else ()
        for word, meant in sorted(near.items()):
            if word not in required:
                line = next(line for line, granted in self.lines.items() if word in granted)
                place = self.where(GrantsSettings.name_of(line))
                raise SettingsError(f"{place}: no tool requires {word!r:.80}; did you mean {meant}?")

    def problems(
        self, tools: Collection[Tool], is_there: Callable[[str], bool], stored: Callable[[str], str]
    ) -> Iterator[ToolError]:
        """The lines that match no tool, and the capabilities that no tool requires.

        `is_there` says whether a name that is not among the tools is that of another tool or of a bundle; `stored` returns
        the key that grants a stored tool of that name.
        """
        meant = {word for tool in tools for word in self.words_for(tool)}
        required = {name for tool in tools for name in tool.requires}.union(KNOWN)
        for word, granted in self.lines.items():
            place = self.where(GrantsSettings.name_of(word))
            if word != EVERY and word not in meant and not is_there(word):
                cure = did_you_mean(word, {tool.name for tool in tools}) or Cure("see the names with: crib list")
                yield ToolError(Kind.VALIDATION, f"{place}: there is no such tool", cure=cure)
            elif word not in meant and (exact := stored(word)):
                yield ToolError(
                    Kind.VALIDATION, f"{place}: a name alone means no tool of a stored bundle; write {_quote(exact)}"
                )
            for capability in sorted(granted - {EVERY}):
                if not any(is_granted(name, frozenset({capability})) for name in required):
                    cure = did_you_mean(capability, required) or Cure("see what tools require with: crib list")
                    yield ToolError(Kind.VALIDATION, f"{place}: no tool requires {capability!r:.80}", cure=cure)

    def warnings(self, entries: Iterable[Entry]) -> Iterator[str]:
        """Warnings about lines that open the machine or the network to every tool, and about ambiguous names."""
        granted = self.lines.get(EVERY, frozenset())
        opened = [name for name in WIDE if is_granted(name, granted)]
        if opened:
            place = self.where(GrantsSettings.name_of(EVERY))
            others = "also built-in ones and every file that is added later"
            yield f"{place}: every tool may use {' and '.join(opened)}, {others}; grant it to tools by name instead"
        tools = [entry.tool for entry in entries] if self._bare else []
        for word in self._bare:
            name = slug_of(read_address(word).name)
            same = [tool for tool in tools if name in _names_of(tool)]
            first = next((tool for tool in same if word in self.words_for(tool)), None)
            other = next((tool for tool in same if self.missing(tool)), None)
            if first is not None and other is not None and other.bundle != first.bundle:
                either = " or ".join(_quote(f"{tool.bundle or HOST}/{word}") for tool in (first, other))
                place = self.where(GrantsSettings.name_of(word))
                yield f"{place}: several tools are called so, and it means {first.address} alone; write {either}"

    def _line_for(self, tool: Tool, capability: str) -> str:
        words = [word for word in self.words_for(tool) if is_granted(capability, self.lines[word])]
        if not words:
            return "no line"
        word = words[-1]
        listed = ", ".join(map(_quote, sorted(self.lines[word])))
        return f"{_quote(word)} = [{listed}], {self.where(GrantsSettings.name_of(word))}"

    def _named(self) -> set[str]:
        return {word for granted in self.lines.values() for word in granted if "*" not in word}


def needed_grants(tool: Tool) -> frozenset[str]:
    """The capabilities that need a grant; stored tools reach servers without one, restricted by the list of allowed hosts."""
    return tool.requires - BOUNDED if is_document(tool) else tool.requires


def missing_grants(required: frozenset[str], granted: frozenset[str]) -> frozenset[str]:
    """The required capabilities that no grant covers."""
    return frozenset(capability for capability in required if not is_granted(capability, granted))


def is_granted(capability: str, granted: frozenset[str]) -> bool:
    """Whether one of the grants covers the capability: its exact name, or everything below a dot."""
    if capability in granted or EVERY in granted:
        return True
    return any(grant.endswith(".*") and capability.startswith(grant[:-1]) for grant in granted)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _names_of(tool: Tool) -> dict[str, None]:
    """The names by which a line may match the tool: its own, those of its action, and the one that models see."""
    action = action_of(tool)
    names = (tool.slug,) if action is None else (tool.slug, str(action), action.whole)
    return dict.fromkeys((*names, slug_of(function_name(tool.name))))
