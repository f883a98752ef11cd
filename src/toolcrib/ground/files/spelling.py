"""How a path may be spelled, and which components are meant by it."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from toolcrib.ground.files.beneath import MAX_PARTS
from toolcrib.ground.files.faults import show
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PATH = 4096

_UNSPEAKABLE = frozenset({"Cc", "Cs"})  # control characters, and halves of surrogate pairs


def split_path(path: str, roots: Iterable[str]) -> list[str]:
    r"""The components beneath the root; `..` stays in, for only the disk knows where it leads.

    A back-slash is read as a slash, so a file whose name holds one cannot be named. An absolute path counts from
    the root when it begins with one of the root's own spellings, and is refused otherwise.
    """
    _check_characters(path)
    path = path.replace("\\", "/")
    if path.startswith("/"):
        path = _strip_root(path, roots)
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if len(parts) > MAX_PARTS:
        raise ToolError(Kind.VALIDATION, f"{show(path)} has {len(parts)} parts; use at most {MAX_PARTS}")
    return parts


def _check_characters(path: str) -> None:
    if not path:
        raise ToolError(Kind.VALIDATION, "the path is empty; write '.' for the workspace itself")
    if len(path) > MAX_PATH:
        raise ToolError(Kind.VALIDATION, f"{show(path)} has {len(path)} characters; use at most {MAX_PATH}")
    if any(unicodedata.category(letter) in _UNSPEAKABLE for letter in path):
        raise ToolError(Kind.VALIDATION, f"{show(path)} holds a control character; write the path without it")


def _strip_root(path: str, roots: Iterable[str]) -> str:
    for root in roots:
        if path == root or path.startswith(f"{root.rstrip('/')}/"):
            return path[len(root) :]
    raise ToolError(
        Kind.BLOCKED,
        f"{show(path)} lies outside the workspace; use a path relative to the workspace",
        details={"path": path[:MAX_PATH]},
    )
