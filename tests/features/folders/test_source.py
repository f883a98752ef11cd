"""Tools of registries in the catalogue: which are in force, and what sessions find that began before."""

from dataclasses import replace
from pathlib import Path

import pytest

from sample_tools import host_tool
from toolcrib import Kind, Session, Tool, ToolError
from toolcrib.core.catalog import Catalog
from toolcrib.core.sources import folder_rank
from toolcrib.features.folders.registry_folders import RegistryFolder
from toolcrib.features.folders.source import VERSIONS_KEPT, RegistrySource, Versions
from toolcrib.model.tool import Handler

OPEN = {"type": "object"}


def built(name, description="Built.", version="1.0.0"):
    run = Handler(root=Path("tools"), folder=name, language="javascript", files={})
    return Tool(name=name, description=description, parameters=OPEN, run=run, bundle="tools", version=version)


def of_the_host(name):
    return host_tool(name, description="Host.")


class Registry(Versions):
    """The registries of a project, which a test builds anew."""

    loaded = ()

    def __init__(self):
        super().__init__()
        self.builds = 0

    def put(self, version, tools):
        super().put(version, tools)
        self.builds += 1

    def generation(self):
        return self.builds


def bound(version):
    return Session(id="s", tools_version=version)


def source_of(registry, path):
    return RegistrySource(registry, RegistryFolder(path, path.name, folder_rank(0)))


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def catalog(registry):
    catalog = Catalog()
    catalog.add_source(source_of(registry, Path("tools")))
    return catalog


def test_a_session_finds_the_tools_of_the_registry_it_began_with(catalog, registry):
    registry.put("1.0.a", [built("one", "old"), built("gone")])
    registry.put("1.0.b", [built("one", "new"), built("two")])
    assert catalog.find("one").tool.description == "new"
    assert catalog.find("one", session=bound("1.0.b")).tool.description == "new"
    assert catalog.find("one", session=bound("1.0.a")).tool.description == "old"
    assert catalog.find("gone") is None
    assert catalog.find("gone", session=bound("1.0.a")).tool.name == "gone"
    assert catalog.find("two", session=bound("1.0.a")) is None
    assert catalog.find("tools/one@1.0.0", session=bound("1.0.a")).tool.description == "old"
    assert catalog.find("tools/one@2.0.0", session=bound("1.0.a")) is None


def test_tools_that_no_registry_names_are_found_by_every_session(registry):
    catalog = Catalog()
    catalog.add(of_the_host("one"))
    catalog.add_source(source_of(registry, Path("tools")))
    registry.put("1.0.a", [built("two")])
    registry.put("1.0.b", [built("one"), built("two")])
    assert catalog.find("one", session=bound("1.0.a")).tool.description == "Host."


def test_a_switch_holds_for_earlier_versions_too(registry):
    catalog = Catalog(frozenset({"one"}))
    catalog.add_source(source_of(registry, Path("tools")))
    registry.put("1.0.a", [built("one")])
    registry.put("1.0.b", [built("one")])
    assert not catalog.find("one", session=bound("1.0.a")).enabled


def test_a_version_that_is_forgotten_is_refused_with_its_name(catalog, registry):
    for number in range(VERSIONS_KEPT + 1):
        registry.put(f"1.0.{number}", [built("one")])
    with pytest.raises(ToolError, match="registry 1.0.0, which is not loaded here; open a new session") as refusal:
        catalog.find("one", session=bound("1.0.0"))
    assert refusal.value.kind is Kind.CONFLICT
    assert catalog.find("one", session=bound("1.0.1")) is not None


def test_two_built_tools_of_one_address_are_a_problem_and_the_first_stays(catalog, registry):
    registry.put("1.0.a", [built("one", "first"), replace(built("one"), description="second")])
    assert catalog.find("one").tool.description == "first"
    assert "tools/one@1.0.0 is already defined in" in catalog.problems()[0].message
    registry.put("1.0.b", [built("one", "first")])
    assert catalog.problems() == []


def test_a_folder_that_is_not_built_is_what_an_unknown_name_hints_at(registry, tmp_path):
    (tmp_path / "tools" / "kb_search").mkdir(parents=True)
    (tmp_path / "tools" / "kb_search" / "schema.json").touch()
    catalog = Catalog()
    catalog.add_source(source_of(registry, tmp_path / "tools"))
    registry.put("", [])
    hint = "tools/kb_search is not built (not in a registry); run: crib build"
    assert catalog.suggest("kb_search") == hint
    assert catalog.tools_version == ""


def test_an_unknown_name_that_is_too_long_for_a_file_hints_at_no_folder(registry, tmp_path):
    catalog = Catalog()
    catalog.add_source(source_of(registry, tmp_path / "tools"))
    (tmp_path / "tools").mkdir()
    registry.put("", [])
    assert catalog.suggest("a" * 256) == ""


def test_a_session_is_shown_the_tools_of_the_registry_it_began_with_and_all_others(catalog, registry):
    catalog.add(of_the_host("other"))
    registry.put("1.0.a", [built("one", "old"), built("gone")])
    registry.put("1.0.b", [built("one", "new"), built("two")])
    shown = {entry.tool.name: entry.tool.description for entry in catalog.entries(bound("1.0.a"))}
    assert shown == {"other": "Host.", "one": "old", "gone": "Built."}
    assert {entry.tool.name for entry in catalog.entries(bound("1.0.b"))} == {"other", "one", "two"}
