"""Read the positional arguments and options of a usage line, such as `Usage: copy.sh [-f] SOURCE TARGET`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import SPREAD, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Only the beginning of a text is searched: a usage line is near the top.
USAGE_LETTERS = 32_000
USAGE = re.compile(
    r"\busage[ \t]*+:?[ \t]*+(?:\n[ \t]*+#?[ \t]*+)?(?:\$0|\$\{0[^}]*+\}|\$\(basename[^)]*+\)|\{[^}\n]*+\}|[\w./${}%-]++)((?:[ \t]++[^\n\"';]++)?)",
    re.IGNORECASE,
)


def read_usage(text: str) -> list[Parameter]:
    """The positional arguments and options of the first usage line, in their order."""
    found = next((match for match in USAGE.finditer(text[:USAGE_LETTERS]) if match[1].strip()), None)
    if found is None:
        return []
    return list(usage_words(found[1]))


def usage_words(line: str) -> Iterator[Parameter]:
    """The positional arguments and options that follow the name of the program."""
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
            elif piece.endswith("]"):  # the option takes no value
                option = ""
            continue
        # `{start|stop}` lists the values of a word, not its name.
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
    """The words of a usage line; a group in brackets is one word."""
    return re.findall(r"\[[^\]\n]*+\](?:\.\.\.)?|<[^>\n]*+>(?:\.\.\.)?|[^\s\[\]]+", line.partition("#")[0])


def _plain(word: str) -> str:
    name = re.sub(r"\W+", "_", word.strip("<>{}[]\"'. ").lower()).strip("_")
    return name if re.fullmatch(r"[a-z]\w{0,63}", name) else ""
