"""A project with a shop in SQLite, and tools over it that are called as everything else is."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sql_shop import BUNDLE, Shop, document, make_shop

from toolcrib import Crib, ToolError
from toolcrib.features.bundles.format import read_tool


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop in a project of its own."""
    (tmp_path / "toolcrib.toml").write_text("")
    make_shop(tmp_path / "shop.sqlite")
    async with Crib(tmp_path) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
        yield Shop(tmp_path, crib)


@pytest.fixture
def problems_of() -> Callable[..., str]:
    """What is wrong with a document."""

    def find(statement: str, arguments: dict[str, Any] | None = None, **impl: Any) -> str:
        try:
            reading = read_tool(
                document(statement, arguments, **impl), bundle_id=BUNDLE, slug="a", version="v1", bundle="shop"
            )
        except ToolError as problem:
            return problem.message
        return "; ".join(reading.warnings)

    return find
