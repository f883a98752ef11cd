"""A catalogue of bundles agrees with a model of a few dictionaries, after any operations in any order."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from soaks import size
from toolcrib import Kind, ToolError
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.file_store import FileStore
from toolcrib.lib.names import stable_id

IDS = [stable_id("test", str(number)) for number in range(3)]
SLUGS = ["acme", "Acme", "tools"]
NAMES = ["weather", "Weather", "größe", "wind"]
VERSIONS = ["v1", "v2"]
DAY = 86_400.0

ids = st.sampled_from(IDS)
slugs = st.sampled_from(SLUGS)
names = st.sampled_from(NAMES)
versions = st.sampled_from(VERSIONS)


@dataclass
class Model:
    """A bundle as it should be."""

    slug: str
    enabled: bool
    deleted_at: float | None = None
    tools: dict[tuple[str, str], bool] = field(default_factory=dict)


class Machine(RuleBasedStateMachine):
    """Does things to a catalogue and to the dictionaries, and compares."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_800_000_000.0
        self.model: dict[str, Model] = {}
        self.prepare()
        self.bundles = self.open()  # type: ignore[assignment]

    def prepare(self) -> None:
        self.store = MemoryStore()

    def open(self) -> Bundles:
        return self.make(self.store, Index(None))

    def make(self, store, index) -> Bundles:
        return Bundles(
            store,
            index,
            entries=list,
            functions={},
            key=lambda: b"k" * 32,
            clock=lambda: self.now,
            monotonic=lambda: self.now,
            max_tools=6,
        )

    def expect(self, kind, door, *arguments):
        if kind is None:
            return door(*arguments)
        with pytest.raises(ToolError) as caught:
            door(*arguments)
        assert caught.value.kind is kind, caught.value
        return None

    def why_closed(self, id_):
        """Why nothing in the bundle can be written; None if it can."""
        bundle = self.model.get(id_)
        if bundle is None:
            return Kind.NOT_FOUND
        if bundle.deleted_at is not None:
            return Kind.CONFLICT
        return None if bundle.enabled else Kind.DISABLED

    @rule(id_=ids, slug=slugs, enabled=st.booleans())
    def put_bundle(self, id_, slug, enabled):
        document = {"slug": slug, "displayName": slug, "isEnabled": enabled}
        bundle, is_new = self.bundles.put_bundle(id_, document)
        assert is_new == (id_ not in self.model)
        before = self.model.get(id_)
        self.model[id_] = Model(slug, enabled, tools={} if before is None else before.tools)
        assert (bundle.slug, bundle.enabled, bundle.soft_deleted_at) == (slug, enabled, "")

    @rule(id_=ids, enabled=st.booleans())
    def switch_bundle(self, id_, enabled):
        kind = self.why_closed(id_)
        kind = None if kind is Kind.DISABLED else kind
        self.expect(kind, self.bundles.switch_bundle, id_, enabled)
        if kind is None:
            self.model[id_].enabled = enabled

    @rule(id_=ids)
    def delete_bundle(self, id_):
        bundle = self.model.get(id_)
        kind = Kind.NOT_FOUND if bundle is None else Kind.CONFLICT if bundle.tools or bundle.deleted_at else None
        self.expect(kind, self.bundles.delete_bundle, id_)
        if kind is None:
            bundle.deleted_at = self.now

    @rule(id_=ids, name=names, version=versions, enabled=st.booleans())
    def put_tool(self, id_, name, version, enabled):
        kind = self.why_closed(id_)
        if kind is None and sum(len(bundle.tools) for bundle in self.model.values()) >= 6:
            kind = Kind.LIMIT_EXCEEDED
        elif kind is None and (name, version) in self.model[id_].tools:
            kind = Kind.CONFLICT
        document = {
            "schemaVersion": "toolcrib-1",
            "displayName": f"{id_} {name} {version}",
            "type": "http",
            "isEnabled": enabled,
            "argSchema": {"type": "object"},
            "outputSchema": {},
            "impl": {"urlTemplate": "https://example.com/"},
        }
        self.expect(kind, self.bundles.put_tool, id_, name, version, document)
        if kind is None:
            self.model[id_].tools[name, version] = enabled

    @rule(id_=ids, name=names, version=versions, enabled=st.booleans())
    def switch_tool(self, id_, name, version, enabled):
        kind = self.why_closed(id_)
        if kind is None and (name, version) not in self.model[id_].tools:
            kind = Kind.NOT_FOUND
        self.expect(kind, self.bundles.switch_tool, id_, name, version, enabled)
        if kind is None:
            self.model[id_].tools[name, version] = enabled

    @rule(id_=ids, name=names, version=versions)
    def delete_tool(self, id_, name, version):
        there = id_ in self.model and (name, version) in self.model[id_].tools
        self.expect(None if there else Kind.NOT_FOUND, self.bundles.delete_tool, id_, name, version)
        if there:
            del self.model[id_].tools[name, version]

    @rule(id_=ids, name=names, version=versions)
    def look_up(self, id_, name, version):
        there = id_ in self.model and (name, version) in self.model[id_].tools
        kept = self.expect(None if there else Kind.NOT_FOUND, self.bundles.tool, id_, name, version)
        entry = self.bundles.entry(id_, name, version)
        assert (entry is None) == (not there)
        if there:
            bundle = self.model[id_]
            usable = bundle.enabled and bundle.tools[name, version]
            assert kept.tool.display_name == f"{id_} {name} {version}"
            assert (kept.enabled, kept.usable, entry.enabled) == (bundle.tools[name, version], usable, usable)
            assert entry.tool is kept.tool

    @rule(name=names)
    def find(self, name):
        found = self.bundles.find(name, None, None)
        holding = [bundle for bundle in self.model.values() if any(tool == name for tool, _ in bundle.tools)]
        assert (found is None) == (not holding)
        if found is not None:
            first = min((not bundle.enabled, bundle.slug) for bundle in holding)
            ids_of_first = [i for i, b in self.model.items() if b in holding and (not b.enabled, b.slug) == first]
            assert found.tool.display_name.partition(" ")[0] in ids_of_first

    @rule(size=st.integers(1, 7), everything=st.booleans())
    def walk(self, size, everything):
        wanted = {
            (id_, name, version)
            for id_, bundle in self.model.items()
            for (name, version), enabled in bundle.tools.items()
            if everything or (enabled and bundle.enabled)
        }
        found, token = [], ""
        while True:
            page = self.bundles.list_tools(page_size=size, page_token=token, include_disabled=everything)
            assert len(page.items) <= size
            found += [(kept.bundle.id, kept.slug, kept.version) for kept in page.items]
            token = page.next_token
            if not token:
                break
            assert len(page.items) == size
        assert sorted(found) == sorted(wanted)
        hits = self.bundles.search("w", page_size=256, include_disabled=everything).items
        begins = {each for each in wanted if each[1].lower().startswith("w")}
        assert begins <= {(hit.kept.bundle.id, hit.kept.slug, hit.kept.version) for hit in hits} <= wanted
        shown = self.bundles.list_bundles(page_size=256, include_disabled=everything).items
        alive = {i for i, b in self.model.items() if b.deleted_at is None and (everything or b.enabled)}
        assert [bundle.id for bundle in shown] == sorted(alive)

    @rule(hours=st.sampled_from([1, 24, 49]))
    def reap(self, hours):
        self.bundles.reap()
        self.now += hours * 3_600
        due = {i for i, b in self.model.items() if b.deleted_at is not None and self.now - b.deleted_at >= 2 * DAY}
        assert set(self.bundles.reap()) == due
        for id_ in due:
            del self.model[id_]

    @rule()
    def reopen(self):
        self.bundles.close()
        self.bundles = self.open()  # type: ignore[assignment]

    @invariant()
    def addresses_are_unique(self):
        tools = [kept.tool.address for kept in self.bundles.list_tools(page_size=256, include_disabled=True).items]
        assert len(set(tools)) == len(tools)

    def teardown(self):
        assert self.bundles.problems() == []
        self.bundles.close()


class FileMachine(Machine):
    """The same over files and an index on disk."""

    def prepare(self) -> None:
        self.folder = tempfile.TemporaryDirectory()

    def open(self) -> Bundles:
        root = Path(self.folder.name)
        return self.make(FileStore(root / "store"), Index(root / "index.sqlite3"))

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


UNHURRIED: dict[str, Any] = {"deadline": None, "suppress_health_check": [*HealthCheck]}
TestInMemory = Machine.TestCase
TestInMemory.settings = settings(max_examples=25, stateful_step_count=40, **UNHURRIED)
TestInFiles = FileMachine.TestCase
TestInFiles.settings = settings(max_examples=5, stateful_step_count=30, **UNHURRIED)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_many_more_of_both():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Machine, settings=settings(max_examples=size(1_000), stateful_step_count=60, **UNHURRIED))
    run_state_machine_as_test(
        FileMachine, settings=settings(max_examples=size(100), stateful_step_count=60, **UNHURRIED)
    )
