"""Catalogues of bundles over every pair of a store and an index."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sample_tools import host_tool
from toolcrib import Tool
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.files import Disk
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.file_store import FileStore
from toolcrib.lib.names import new_id

KEY = b"k" * 32


class Clock:
    """A wall clock and a monotonic one; both stand still until they are moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.steady = 5.0

    def __call__(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds


class UnflushedDisk(Disk):
    """Flushes nothing: what lasts when the power fails is proved for the store itself, and a catalogue would only wait for it."""

    def sync(self, descriptor: int) -> None:
        """Nothing to do."""

    def sync_files(self, names: Sequence[str], *, folder: int) -> None:
        """Nothing to do."""


class Shop:
    """A store that several catalogues share, each as a process of its own would."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind = kind
        self.root = root
        self.store = MemoryStore() if kind == "memory" else FileStore(root, disk=UnflushedDisk())
        self.clock = Clock()
        self.opened: list[Bundles] = []

    def open(self, **settings: Any) -> Bundles:
        """A catalogue over the store."""
        index = Index(self.root.parent / "index.sqlite3") if self.kind == "sqlite" else Index(None)
        given: dict[str, Any] = {"entries": list, "functions": {}, "key": lambda: KEY, "clock": self.clock}
        bundles = Bundles(
            self.store if self.kind == "memory" else FileStore(self.root, disk=UnflushedDisk()),
            index,
            **(given | {"monotonic": self.clock.monotonic} | settings),
        )
        self.opened.append(bundles)
        return bundles

    def path(self, bundle_id: str, name: str = "bundle.json") -> Path:
        """The file of a document."""
        return self.root / "bundles" / bundle_id / name

    def read(self, bundle_id: str, name: str = "bundle.json") -> bytes | None:
        """The bytes of a document."""
        return self.store.get(f"bundles/{bundle_id}/{name}")


def _shop(kind: str, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(kind, tmp_path / "store")
    yield shop
    for bundles in shop.opened:
        bundles.close()


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """All in memory, and all on disk."""
    yield from _shop(request.param, tmp_path)


@pytest.fixture(params=["files", "sqlite"])
def file_shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """The pairs whose documents are files."""
    yield from _shop(request.param, tmp_path)


@pytest.fixture
def sqlite_shop(tmp_path: Path) -> Iterator[Shop]:
    """Files with an index on disk."""
    yield from _shop("sqlite", tmp_path)


@pytest.fixture
def bundles(shop: Shop) -> Bundles:
    """A catalogue without anything in it."""
    return shop.open()


@pytest.fixture
def bundle_document() -> Callable[..., dict[str, object]]:
    """The document of a bundle as a client sends it."""

    def make(slug: str = "acme", **more: object) -> dict[str, object]:
        return {"slug": slug, "displayName": slug.title(), "isEnabled": True, "description": "", **more}

    return make


@pytest.fixture
def tool_document() -> Callable[..., dict[str, object]]:
    """The document of a tool as a client sends it: a request, or with a key a function."""

    def make(key: str = "", **more: object) -> dict[str, object]:
        return {
            "schemaVersion": "toolcrib-1",
            "displayName": "Weather report",
            "description": "Fetch current weather for a city",
            "type": "go" if key else "http",
            "isEnabled": True,
            "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False},
            "outputSchema": {},
            "impl": {"goFunc": key} if key else {"urlTemplate": "https://api.example.com/?q=${city}"},
            **more,
        }

    return make


@pytest.fixture
def put_bundle(bundle_document) -> Callable[..., str]:
    """Write a bundle; its id."""

    def put(bundles: Bundles, slug: str = "acme", **more: object) -> str:
        bundle_id = new_id()
        bundles.put_bundle(bundle_id, bundle_document(slug, **more))
        return bundle_id

    return put


@pytest.fixture
def make_tool() -> Callable[..., Tool]:
    """A tool of another source."""

    def make(name: str, bundle: str = "builtin", version: str = "1.0.0", **more: Any) -> Tool:
        return host_tool(name, bundle=bundle, version=version, **{"description": f"{name} does it", **more})

    return make


@pytest.fixture
def walk() -> Callable[..., list]:
    """Everything that a listing gives, page by page."""

    def go(listing: Callable[..., Any], **query: object) -> list:
        found: list[object] = []
        token = ""
        while True:
            page = listing(**query, page_token=token)
            found += page.items
            token = page.next_token
            if not token:
                return found

    return go


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], object]:
    """Ask until the answer is yes, for at most ten seconds."""

    def wait(condition: Callable[[], object]) -> object:
        deadline = time.monotonic() + 25
        while not (answer := condition()):
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.01)
        return answer

    return wait


@pytest.fixture
def edit() -> Callable[..., None]:
    """Change a document as a person with an editor does, within the file."""

    def change(path: Path, **changes: object) -> None:
        document = json.loads(path.read_text())
        with path.open("r+") as file:
            file.truncate()
            json.dump(document | changes, file)

    return change
