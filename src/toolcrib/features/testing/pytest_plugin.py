"""The pytest plugin: makes the import paths of existing agent code available to tests."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from toolcrib.features.agent_classes.import_paths import document_imports


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Make the paths importable for the whole run, before the first conftest.py is loaded."""
    stack = ExitStack()
    stack.enter_context(document_imports())
    early_config.add_cleanup(stack.close)
