"""What a Python file says about the environment that it needs: the block `# /// script` of PEP 723."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_DEPENDENCIES = 200

_OPENING = re.compile(r"# /// ([a-zA-Z0-9-]+)")
_CLOSING = "# ///"
_VERSION = r"[0-9A-Za-z.!+_*-]+"
_COMPARISON = rf"(?:===|==|~=|!=|<=|>=|<|>)\s*{_VERSION}"
_COMPARISONS = rf"{_COMPARISON}(?:\s*,\s*{_COMPARISON})*\s*,?"
# A name, its extras, the versions it may have, and when it is needed; no address to fetch it from, and no option.
_DEPENDENCY = re.compile(
    rf"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[[A-Za-z0-9._,\s-]*\])?"
    rf"\s*(?:{_COMPARISONS}|\(\s*{_COMPARISONS}\s*\))?\s*(?:;[ -~]*)?"
)
_PYTHON = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirements:
    """The packages that a file needs, and the versions of Python that it runs on."""

    dependencies: tuple[str, ...] = ()
    python: str = ""

    def allows(self, version: tuple[int, ...]) -> bool:
        """Whether the file runs on this Python."""
        return all(_meets(version, *match.groups()) for match in _PYTHON.finditer(self.python))


def read_requirements(path: Path, code: bytes) -> Requirements | None:
    """What the block of the file asks for, None without a block; raises VALIDATION for one that cannot be obeyed."""
    if _CLOSING.encode() not in code:
        return None
    blocks = [text for kind, text in _blocks(code.decode("utf-8", "replace")) if kind == "script"]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise _refusal(f"{path}: there are {len(blocks)} blocks '# /// script'; write one")
    table = read_toml(blocks[0], f"{path}: # /// script")
    return Requirements(
        dependencies=_dependencies(path, table.get("dependencies", [])),
        python=_python(path, table.get("requires-python", "")),
    )


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Every block of the file: its kind, and its text without the signs of a comment."""
    lines = text.replace("\r\n", "\n").split("\n")
    place = 0
    while place < len(lines):
        opening = _OPENING.fullmatch(lines[place])
        end = _end_of_block(lines, place) if opening else 0
        if opening and end:
            yield opening[1], "\n".join(line[2:] for line in lines[place + 1 : end])
            place = end
        place += 1


def _end_of_block(lines: list[str], opening: int) -> int:
    """Where the block ends: the last closing line before the comment does; 0 if there is none."""
    end = 0
    for place in range(opening + 1, len(lines)):
        line = lines[place]
        if line != "#" and not line.startswith("# "):
            break
        if line == _CLOSING and place > opening + 1:
            end = place
    return end


def _dependencies(path: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise _refusal(f'{path}: dependencies: must be a list of texts; write dependencies = ["name>=1.0"]')
    if len(value) > MAX_DEPENDENCIES:
        raise _refusal(f"{path}: dependencies: {len(value)} entries, the limit is {MAX_DEPENDENCIES}")
    for entry in value:
        if not _DEPENDENCY.fullmatch(entry.strip()):
            raise _refusal(f"{path}: dependencies: {entry!r} is not a name with versions; write 'name>=1.0'")
    return tuple(entry.strip() for entry in value)


def _python(path: Path, value: object) -> str:
    if isinstance(value, str) and all(_PYTHON.fullmatch(part.strip()) for part in value.split(",") if part.strip()):
        return value
    raise _refusal(f"{path}: requires-python: {value!r} names no versions; write requires-python = '>=3.11'")


def _meets(version: tuple[int, ...], comparison: str, written: str, wildcard: str | None) -> bool:
    wanted = tuple(map(int, written.split(".")))
    if comparison == "~=":
        return _pad(version) >= _pad(wanted) and version[: len(wanted) - 1] == wanted[:-1]
    here, there = (version[: len(wanted)], wanted) if wildcard else (_pad(version), _pad(wanted))
    if comparison in {"==", "==="}:
        return here == there
    if comparison == "!=":
        return here != there
    if comparison in {">=", ">"}:
        return here > there or (comparison == ">=" and here == there)
    return here < there or (comparison == "<=" and here == there)


def _pad(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:4]


def _refusal(message: str) -> ToolError:
    return ToolError(Kind.VALIDATION, message)
