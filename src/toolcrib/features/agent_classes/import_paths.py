"""Make the import paths of existing agent code importable, unless real modules have those names."""

from __future__ import annotations

import importlib
import sys
import threading
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

CLASSES = "toolcrib.features.agent_classes.classes"
# Imported name: where each of its attributes really lives. A package holds nothing itself.
PATHS: dict[str, dict[str, str]] = {
    "tool": {},
    "tool.bases": {
        "BaseTool": "toolcrib.features.agent_classes.classes",
        "create_json_schema": "toolcrib.features.agent_classes.classes",
    },
    "tool.index": {"ToolRegistry": "toolcrib.features.agent_classes.classes"},
    "core": {},
    "core.types": {
        "ToolCall": "toolcrib.features.agent_classes.classes",
        "ToolResult": "toolcrib.features.agent_classes.classes",
    },
    "core.rules": {
        "AuthRule": "toolcrib.core.rules",
        "RuleEngine": "toolcrib.core.rules",
        "SafetyRule": "toolcrib.features.safety_rules.operator_patterns",
    },
}


class DocumentPaths:
    """Finds the modules of PATHS. It is the last finder, so that a real module always comes first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of PATHS, or None; never a submodule of a foreign package."""
        package = fullname.partition(".")[0]
        if fullname not in PATHS or (fullname != package and not _is_ours(package)):
            return None
        # Not a subclass of importlib.abc.Loader, whose import loads a dozen modules.
        return ModuleSpec(fullname, self, is_package=fullname == package)  # type: ignore[arg-type]  # see above

    def create_module(self, spec: ModuleSpec) -> None:
        """None, so that the import system creates an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Set the attributes of the module."""
        for name, home in PATHS[module.__name__].items():
            setattr(module, name, getattr(importlib.import_module(home), name))


class _Offer:
    """The finder of the process, in `sys.meta_path` while at least one block is open."""

    def __init__(self) -> None:
        self._finder = DocumentPaths()
        self._users = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                sys.meta_path.append(self._finder)

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if self._finder in sys.meta_path:
                sys.meta_path.remove(self._finder)
            for name in PATHS:
                if _is_ours(name):
                    del sys.modules[name]


_OFFER = _Offer()


@contextmanager
def document_imports() -> Iterator[None]:
    """Make the import paths importable inside the block, which may be nested and entered by many threads.

    A module that is loaded there keeps what it imported. Other threads see the paths too during the block.
    """
    _OFFER.open()
    before = frozenset(sys.modules)
    try:
        yield
    finally:
        _OFFER.close()
        # A project may define its own BaseTool, which only these classes recognize.
        new = [sys.modules.get(name) for name in frozenset(sys.modules) - before]
        if any("BaseTool" in getattr(module, "__dict__", {}) for module in new):
            importlib.import_module(CLASSES)


def _is_ours(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and isinstance(getattr(module, "__loader__", None), DocumentPaths)
