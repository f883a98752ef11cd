"""The pytest plug-in: tests of existing tool files find the import paths they were written for."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from toolcrib.compat.paths import document_imports

if TYPE_CHECKING:
    import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Offer the paths for as long as pytest runs."""
    stack = ExitStack()
    stack.enter_context(document_imports())
    config.add_cleanup(stack.close)
