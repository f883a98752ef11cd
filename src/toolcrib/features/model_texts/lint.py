"""Find texts of tools that could mislead a model, without running or changing anything."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from toolcrib.lib.hidden_text import find_hidden, show_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.model.tool import Tool

MAX_SHOWN = 60
# The built-in tools; their names are reserved even if the operator disables them.
BUILTINS = ("list_files", "read_file", "write_file", "shell", "fetch")
MAX_TEXTS = 2_000
# A shorter name may be an ordinary word, so it is not searched in the texts of other tools.
LEAST_NAME = 5
# A name that no text holds by chance: `read_mail`, `mail2`, `readMail`.
COMPOUND = re.compile(r"[^\W_]+(?:[_-][^\W_]+)+|[^\W\d_]+\d+|[a-z]+[A-Z][^\W_]*")
# Each letter belongs to one match at most, so that a text without blanks is searched in linear time.
WORDS = re.compile(r"[^\W_]+(?:[_-][^\W_]+)*")

# Phrases that no description of a tool needs, matched ignoring case.
_OTHERS = r"(?:all |any |the |your |every )*(?:previous|prior|above|earlier|other|system)"
_TELL = r"(?:tell|inform|mention|notify|reveal|show)(?:ing)?"
_MUST = r"(?:must|should|shall|have to|need to|are required to) (?:always |first |also |never )*"
INSTRUCTIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:ignore|disregard|forget|override) {_OTHERS} (?:instruction|prompt|rule|message|tool|direction)s?\b",
        r"\b(?:ignore|disregard|forget) (?:all|every|any)(?:thing)? (?:you |said |written )*(?:above|before|instructions?)\b",
        rf"\b(?:do not|don't|never|without) {_TELL}\b[^.]{{0,40}}\b(?:user|human|operator|person|anyone)\b",
        rf"\b(?:you|the (?:assistant|model|agent|ai|llm)) {_MUST}(?:call|invoke|run|read|send|include|forward|append|execute|reveal)\b",
        r"\bbefore (?:using|calling|you (?:use|call)|invoking|any) [^.]{0,30}\btools?\b",
        r"\b(?:instead of|rather than|do not) (?:use|using|call|calling) [^.]{0,40}\btools?\b",
        r"</?(?:important|system|instructions?|assistant|secret|hidden|admin|developer)>|\[/?INST\]|<\|[a-z_]+\|>",
        r"\b(?:system prompt|developer message|hidden instruction|jailbreak|chain of thought)s?\b",
    )
)

# A Latin letter, and the letters and digits that look like it in common fonts; accents are removed before.
LOOKALIKES = (
    *("aаαɑ@ᴀꓮᎪ", "bвβьƅʙꓐᏴ", "cсϲᴄꓚᏟ", "dԁđᴅꓓᎠ", "eеε3℮ᴇꓰᎬ", "fƒꜰꓝ", "gɡɢꓖᏀ", "hһнħʜꓧᎻ", "iіιıɪɩꓲ", "jјᴊꓙᎫ", "kкκᴋꓗᏦ"),  # noqa: RUF001 - on purpose
    *("lℓӏ1|!łʟꓡᏞ", "mмᴍꓟᎷ", "nпηոɴꓠ", "oоο0øσօᴏꓳ", "pрρᴘꓑᏢ", "qԛ", "rгʀꓣᎡ", "sѕ5$ʂꜱꓢᏚ", "tтτᴛꓔᎢ", "uυսᴜꓴ", "vνᴠꓦᏙ"),  # noqa: RUF001 - on purpose
    *("wԝωшѡᴡꓪᎳ", "xхχꓫ", "yуγʏꓬ", "zʐᴢꓜᏃ"),  # noqa: RUF001 - on purpose
)
_TO_LATIN = str.maketrans({letter: group[0] for group in LOOKALIKES for letter in group[1:]})


class TextLint:
    """Checks the texts of tools that a model reads."""

    def __init__(self) -> None:
        self._builtins = {skeleton(name): name for name in BUILTINS}

    def of_tool(self, tool: Tool) -> list[str]:
        """Warnings about one tool: hidden characters, and instructions to the model."""
        return [*self._hidden(tool), *self._instructions(tool)]

    def across(self, tools: Iterable[Tool]) -> list[str]:
        """Warnings about tools that imitate or mention other tools."""
        listed = list(tools)
        return [*self._lookalikes(listed), *self._imitations(listed), *self._references(listed)]

    def _hidden(self, tool: Tool) -> Iterator[str]:
        for place, text in texts_of(tool):
            if found := find_hidden(text):
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                yield f"{_name(tool)}: {place} holds a hidden character, {found[0]}{more}; remove it, models read it"

    def _instructions(self, tool: Tool) -> Iterator[str]:
        for place, written in texts_of(tool):
            text = " ".join(written.split())  # a phrase may be broken into lines
            for pattern in INSTRUCTIONS:
                if found := pattern.search(text):
                    said = show_hidden(found[0])[:MAX_SHOWN]
                    yield f"{_name(tool)}: {place} instructs the model ({said!r}); say what the tool does instead"
                    break

    def _lookalikes(self, tools: list[Tool]) -> Iterator[str]:
        known: dict[str, Tool] = {}
        for tool in tools:
            if is_mixed(tool.name):
                yield f"{_name(tool)}: its name mixes letters of several scripts; write it in one"
            other = known.setdefault(skeleton(tool.name), tool)
            if other.slug != tool.slug:
                yield f"{_name(tool)}: its name looks like that of {_name(other)}; rename one of them"

    def _imitations(self, tools: list[Tool]) -> Iterator[str]:
        for tool in tools:
            meant = self._builtins.get(skeleton(tool.name))
            if meant is not None and tool.bundle != "builtin":
                yield f"{_name(tool)}: it goes by the name of the built-in tool {meant}; rename it"

    def _references(self, tools: list[Tool]) -> Iterator[str]:
        owners = {tool.name: tool for tool in tools if len(tool.name) >= LEAST_NAME and COMPOUND.fullmatch(tool.name)}
        for tool in tools if owners else ():
            for place, text in texts_of(tool):
                # A text without a blank is the name of a parameter or a value of an enum.
                others = (owners[word] for word in WORDS.findall(text) if word in owners and " " in text)
                if other := next((other for other in others if _is_foreign(other, tool)), None):
                    yield f"{_name(tool)}: {place} speaks of the tool {other.name} of another bundle; describe this tool alone"
                    break


def _is_foreign(other: Tool, tool: Tool) -> bool:
    return other.name != tool.name and other.bundle != tool.bundle


def texts_of(tool: Tool) -> Iterator[tuple[str, str]]:
    """Every text of a tool that a model may read, with its place, up to a limit."""
    yield "its name", tool.name
    yield "its title", tool.display_name
    yield "its description", tool.description
    yield "its summary", tool.summary
    yield "its documentation", tool.documentation
    yield from (("a tag", tag) for tag in tool.tags)
    left = MAX_TEXTS
    for place, value in (
        ("its parameters", tool.parameters),
        ("its output", tool.output_schema),
        ("its examples", tool.examples),
    ):
        for text in _strings(value):
            left -= 1
            if left < 0:
                return
            yield place, text


def skeleton(name: str) -> str:
    """The normal form of a name, equal for names that look alike."""
    plain = "".join(
        letter for letter in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(letter)
    )
    plain = plain.translate(_TO_LATIN).replace("rn", "m").replace("vv", "w").replace("i", "l")
    return "".join(letter for letter in plain if letter.isalnum())


def is_mixed(name: str) -> bool:
    """Whether a name mixes Latin letters with letters of a script that imitates them."""
    if name.isascii():
        return False
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > 64:  # noqa: PLR2004 - no schema that is accepted nests deeper
        return
    elif isinstance(value, dict):
        for key, member in value.items():
            yield str(key)
            yield from _strings(member, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item, depth + 1)


def _name(tool: Tool) -> str:
    where = f" ({tool.origin})" if tool.origin else ""
    return f"{show_hidden(tool.name)}{where}"
