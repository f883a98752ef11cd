"""The pytest plug-in: tests of existing tool files find the import paths they were written for."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from toolcrib.features.agent_classes.import_paths import document_imports


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Offer the paths for as long as pytest runs, beginning before the first conftest.py is loaded."""
    stack = ExitStack()
    stack.enter_context(document_imports())
    early_config.add_cleanup(stack.close)
