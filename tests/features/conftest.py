"""What the tests of several features share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.host import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One sandbox for all tests of a process; its workers stay warm."""
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()
