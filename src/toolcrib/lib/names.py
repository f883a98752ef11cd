"""Names, slugs and addresses of tools, suggestions for misspelt names, and ids of tools and bundles."""

from __future__ import annotations

import hashlib
import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME, Chained, slug_problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.tool import Tool


# The bundles of the tools that come with Toolcrib, and that of the host program's own tools.
BUILTIN_BUNDLE = "builtin"
SYSTEM_BUNDLE = "system"
HOST = "host"
# No folder and no stored bundle can have their names, whether they exist now or not.
RESERVED_BUNDLES = frozenset({BUILTIN_BUNDLE, HOST, SYSTEM_BUNDLE})
FUNCTION_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
HASH_LETTERS = 8
NEAR = 0.8
COMPARED_NAMES = 1_000
# Folders that Python and npm create in the folder of a tool.
FOREIGN = frozenset({"node_modules", "__pycache__"})

_CAPABILITY = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")


class Address(NamedTuple):
    """The parts of `bundle/name@version`, where bundle and version may be absent."""

    bundle: str | None
    name: str
    version: str | None


def read_address(text: str) -> Address:
    """Parse `bundle/name@version`; the bundle, named like its folder, may contain any character."""
    bundle, _, rest = text.rpartition("/")
    name, _, version = rest.partition("@")
    return Address(bundle or None, name, version or None)


class Action(NamedTuple):
    """The two parts of the slug of a tool that is one of several actions of a script."""

    whole: str
    action: str

    def __str__(self) -> str:
        return f"{self.whole}.{self.action}"


def action_of(tool: Tool) -> Action | None:
    """The action that the tool is; None for a tool that is not one of several actions."""
    if not isinstance(tool.run, Chained) or not tool.run.action:
        return None
    action = slug_of(tool.run.action)
    whole = tool.slug.removesuffix(f"-{action}")
    return Action(whole, action) if whole not in (tool.slug, "") else None


def slug_of(name: str) -> str:
    """The slug of a name: dashes instead of underscores."""
    return name.replace("_", "-")


def bundle_below(top: str, folder: str) -> str:
    """The bundle of a folder below one of the tool folders, named after its path; raises ToolError where it cannot be."""
    bundle = slug_of(folder.replace("/", "-")) or top
    problem = "" if bundle == top else slug_problem(bundle)
    if bundle in RESERVED_BUNDLES and bundle != top:
        problem = "this is a bundle of the platform"
    if problem:
        message = f"its folder {folder!r:.80} cannot be the bundle {bundle!r:.80}: {problem}; rename the folder"
        raise ToolError(Kind.VALIDATION, message)
    return bundle


def version_order(version: str) -> tuple[object, ...]:
    """The sort key of a version: number by number, and `1.0.0-rc1` before `1.0.0`."""
    core, _, preview = version.partition("-")
    return _pieces(core), not preview, _pieces(preview)


def function_name(name: str) -> str:
    """The name that models see: the tool's own if every provider accepts it, else an ASCII form with a short hash."""
    if FUNCTION_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LETTERS]
    ascii_form = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[: MAX_NAME - 2 - HASH_LETTERS]
    return f"_{ascii_form}_{digest}"


def function_names(names: Iterable[str]) -> dict[str, str]:
    """Map the names that models see to the tools' own names; raises ToolError if two tools would have the same one."""
    seen: dict[str, str] = {}
    for name in names:
        visible = function_name(name)
        if seen.setdefault(visible, name) != name:
            message = (
                f"{name!r} and {seen[visible]!r} would both be offered to models as {visible!r}; rename one of them"
            )
            raise ToolError(Kind.CONFLICT, message)
    return seen


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that suggests the most similar names; empty if there are none."""
    if not 0 < len(name) <= 2 * MAX_NAME:
        return ""
    candidates = list(known)
    if len(candidates) > COMPARED_NAMES:
        # Comparing with ten thousand names takes longer than the call; most typing errors keep the first letter.
        candidates = [other for other in candidates if other[:1] == name[0]][:COMPARED_NAMES]
    import difflib

    near = difflib.get_close_matches(name, candidates, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def near_misses(names: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """The names that look like typing errors, each with the known name that was probably meant."""
    unknown = [name for name in names if name]
    if not unknown:
        return []
    import difflib

    candidates = list(known)
    found = ((name, difflib.get_close_matches(name, candidates, n=1, cutoff=NEAR)) for name in unknown)
    return [(name, near[0]) for name, near in found if near]


def is_capability(text: str) -> bool:
    """Whether the text has the form of a capability, such as `fs.read`."""
    return _CAPABILITY.fullmatch(text) is not None


def is_foreign(name: str) -> bool:
    """Whether a file or folder of this name, at any depth of a tool folder, does not belong to the tool."""
    return name.startswith(".") or name in FOREIGN


def _pieces(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((1, int(piece), "") if piece.isdecimal() else (0, 0, piece) for piece in text.split("."))


# 2026-01-01: the time of all derived ids, which so sort before every new id.
_EPOCH_MS = 1_767_225_600_000
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def new_id() -> str:
    """A new UUID of version 7."""
    return _spell(time.time_ns() // 1_000_000, os.urandom(10))


def stable_id(*words: str) -> str:
    """A UUID of version 7 that is derived from these words alone, the same on every machine."""
    spelled = [word.encode("utf-8", "surrogatepass") for word in words]
    text = b"".join(len(word).to_bytes(4, "big") + word for word in spelled)
    return _spell(_EPOCH_MS, hashlib.sha256(text).digest())


def is_uuid7(text: object) -> bool:
    """Whether it is a UUID of version 7 in its usual spelling, in upper or lower case."""
    return isinstance(text, str) and _UUID7.fullmatch(text.lower()) is not None


def _spell(milliseconds: int, rest: bytes) -> str:
    number = (milliseconds & (2**48 - 1)) << 80 | int.from_bytes(rest[:10], "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
