"""What the tests of this folder share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _modules_as_they_were(tmp_path: Path) -> Iterator[None]:
    """Projects bring packages of the same names; none of them stays loaded."""
    for name in [name for name in sys.modules if name.partition(".")[0] in {"tool", "core"}]:
        del sys.modules[name]
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:] = [place for place in sys.path if not place.startswith(str(tmp_path))]
