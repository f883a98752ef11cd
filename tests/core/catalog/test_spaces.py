"""Spaces in their order: which tool a name means, which ones it hides, and whom an executor may be looked for among."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_tools import file_run
from toolcrib import Call, Crib, Kind, Tool
from toolcrib.core.catalog import Catalog
from toolcrib.core.sources import LateSource, Rank, ToolList


@pytest.fixture
def spaces(tree, user_tree, make_tool):
    """The project before the user before the system, whose tools are made when a name leads there."""
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    catalog.add_source(user_tree.folder("user"))
    tools = [make_tool("hello", "system"), make_tool("runtime", "system")]
    catalog.add_source(LateSource(Rank.SYSTEM, lambda: [ToolList(Rank.SYSTEM, tools)], bundles=["system"]))
    return catalog


def found(catalog: Catalog, *words) -> str | None:
    entry = catalog.find(*words)
    return None if entry is None else entry.tool.address


def below(catalog: Catalog, name: str, bundle: str) -> str | None:
    entry = catalog.find_below(name, bundle)
    return None if entry is None else entry.tool.address


def messages(catalog: Catalog) -> list[str]:
    return [problem.message for problem in catalog.problems()]


def test_of_equal_names_the_earlier_space_is_meant_and_the_others_are_named(spaces, tree, user_tree):
    assert found(spaces, "hello") == "system/hello@1.0.0"
    user_tree.write("hello.card")
    assert found(spaces, "hello") == "user/hello@1.0.0"
    mine = tree.write("deep/down/hello.card", "hello 0.1.0")
    assert found(spaces, "hello") == "project/hello@0.1.0"
    list(spaces.entries())
    assert spaces.same_name(spaces.find("hello").tool) == ["user/hello@1.0.0", "system/hello@1.0.0"]
    assert found(spaces, "user/hello") == "user/hello@1.0.0"
    assert found(spaces, "hello@1.0.0") == "user/hello@1.0.0"
    assert found(spaces, "hello", "system") == "system/hello@1.0.0"
    mine.unlink()
    (user_tree.path / "hello.card").unlink()
    assert found(spaces, "hello") == "system/hello@1.0.0"


def test_what_is_below_a_space_is_never_of_a_space_above(spaces, tree, user_tree):
    tree.write("runtime.card")
    tree.write("only_here.card")
    assert below(spaces, "runtime", "project") == "project/runtime@1.0.0"
    assert below(spaces, "runtime", "user") == "system/runtime@1.0.0"
    user_tree.write("runtime.card")
    assert below(spaces, "runtime", "user") == "user/runtime@1.0.0"
    assert below(spaces, "runtime", "system") == "system/runtime@1.0.0"
    for spelling in (
        "only_here",
        "only-here",
        "only_here@1.0.0",
        "project/only_here",
        "project/only-here@1.0.0",
        "project/runtime",
        "project/runtime@1.0.0",
    ):
        assert below(spaces, spelling, "user") is None
        assert below(spaces, spelling, "system") is None
        assert below(spaces, spelling, "project") is not None
    assert below(spaces, "user/runtime", "project") == "user/runtime@1.0.0"
    assert below(spaces, "runtime", "nowhere") is None


def test_what_is_below_is_as_fresh_as_any_look_up(spaces, tree, user_tree):
    tree.write("x.card")
    path = user_tree.write("a/runtime.card", "runtime 1.0.0")
    tree.settle()
    user_tree.settle()
    assert below(spaces, "runtime", "project") == "user/runtime@1.0.0"
    path.write_text("runtime 1.0.5")
    assert below(spaces, "runtime", "project") == "user/runtime@1.0.5"
    tree.write("b/runtime.card", "runtime 3.0.0")
    assert below(spaces, "runtime", "project") == "project/runtime@3.0.0"
    assert below(spaces, "runtime", "user") == "user/runtime@1.0.5"
    path.unlink()
    assert below(spaces, "runtime", "user") == "system/runtime@1.0.0"


def test_what_is_below_a_space_does_not_look_at_the_files_above(spaces, tree, user_tree, monkeypatch):
    tree.write("x.card")
    user_tree.write("runtime.card")
    list(spaces.entries())
    _, project, user, _ = spaces._sources

    def fail(*_):
        raise AssertionError

    for door in ("refresh", "refresh_names", "refresh_file"):
        monkeypatch.setattr(project, door, fail)
    assert below(spaces, "runtime", "user") == "user/runtime@1.0.0"
    for door in ("refresh", "refresh_names", "refresh_file"):
        monkeypatch.setattr(user, door, fail)
    assert below(spaces, "runtime", "system") == "system/runtime@1.0.0"


def test_a_broken_file_keeps_its_name_from_the_spaces_below(spaces, tree, user_tree):
    user_tree.write("runtime.card", "broken")
    assert found(spaces, "runtime") is None
    assert below(spaces, "runtime", "project") is None
    assert below(spaces, "runtime", "user") is None
    assert below(spaces, "runtime", "system") == "system/runtime@1.0.0"
    assert found(spaces, "system/runtime") == "system/runtime@1.0.0"


def test_a_tool_of_a_folder_does_not_wait_for_bundles_behind_it_that_are_made_later(tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))

    def fail():
        raise AssertionError

    catalog.add_source(LateSource(Rank.BUILTINS, fail))
    tree.write("hello.card")
    assert found(catalog, "hello") == "project/hello@1.0.0"
    assert below(catalog, "hello", "project") == "project/hello@1.0.0"


def test_a_tool_of_a_folder_does_not_wait_for_folders_behind_it_to_be_read(tree, user_tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    catalog.add_source(user_tree.folder("user"))
    tree.write("hello.card")
    user_tree.write("other.card")
    assert found(catalog, "hello") == "project/hello@1.0.0"
    assert user_tree.dialect.read_files == []
    assert found(catalog, "other") == "user/other@1.0.0"
    assert user_tree.dialect.read_files == ["other.card"]


def test_names_that_two_files_swap_in_place_are_found_at_once(tree, user_tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    catalog.add_source(user_tree.folder("user"))
    tree.write("a.card", "one 1.0.0")
    user_tree.write("b.card", "two 1.0.0")
    list(catalog.entries())
    tree.settle()
    user_tree.settle()
    assert found(catalog, "two") == "user/two@1.0.0"
    tree.write("a.card", "two 1.0.0")
    user_tree.write("b.card", "one 1.0.0")
    assert found(catalog, "two") == "project/two@1.0.0"
    assert found(catalog, "one") == "user/one@1.0.0"


@pytest.mark.spec("S3-05")
def test_one_id_and_version_twice_is_a_conflict_and_another_version_is_accepted(tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    first = tree.write("a/deploy.card", "deploy-service 1.0.0")
    second = tree.write("b/deploy.card", "deploy-service 1.0.0")
    assert found(catalog, "deploy-service") == "project/deploy-service@1.0.0"
    (problem,) = catalog.problems()
    assert problem.kind is Kind.CONFLICT
    assert problem.message == (
        f"{second}:1: project/deploy-service@1.0.0 is already defined in {first}:1; rename one of them"
    )
    tree.write("b/deploy.card", "deploy-service 1.1.0")
    assert messages(catalog) == []
    assert found(catalog, "deploy-service@1.0.0") == "project/deploy-service@1.0.0"
    assert found(catalog, "deploy-service@1.1.0") == "project/deploy-service@1.1.0"


def test_of_several_versions_in_a_tree_the_highest_is_meant_under_any_file_name(tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    tree.write("a.card", "hello 1.9.0")
    tree.write("b.card", "hello 1.10.0")
    tree.write("c.card", "hello 1.10.0-rc1")
    assert found(catalog, "hello") == "project/hello@1.10.0"
    assert [entry.tool.version for entry in catalog.entries()] == ["1.10.0", "1.10.0-rc1", "1.9.0"]
    tree.settle()
    assert found(catalog, "hello") == "project/hello@1.10.0"
    # In place: no folder shows that anything changed.
    tree.write("a.card", "hello 2.0.0")
    assert found(catalog, "hello") == "project/hello@2.0.0"


@pytest.mark.spec("S3-28")
def test_an_action_is_found_by_the_name_of_its_tool_and_its_own(tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    tree.write("x.card", "my_ctl 1.0.0 script deploy", "my_ctl 1.0.0 script roll_back", "plain-tool 1.0.0")
    for spelling in (
        "my_ctl.roll_back",
        "my-ctl.roll-back",
        "my_ctl.roll-back@1.0.0",
        "project/my-ctl.roll_back",
        "project/my_ctl.roll_back@1.0.0",
        "my_ctl-roll_back",
    ):
        assert found(catalog, spelling) == "project/my-ctl-roll-back@1.0.0"
        assert below(catalog, spelling, "project") == "project/my-ctl-roll-back@1.0.0"
    # Only an action is called so: a dash in a name is just a letter.
    for spelling in ("plain.tool", "my.ctl-deploy", "my_ctl.", ".deploy", "my_ctl..deploy", "my_ctl.deploy.x", "."):
        assert found(catalog, spelling) is None
    hint = "my-ctl has the actions my-ctl.deploy, my-ctl.roll-back"
    assert catalog.suggest("my_ctl.destroy") == hint
    assert catalog.suggest("project/my-ctl.destroy@1.0.0") == hint
    assert catalog.suggest("my-ctl") == hint
    assert catalog.suggest("plain-tol") == "did you mean plain-tool?"


@pytest.mark.spec("S3-28")
async def test_a_call_of_an_unknown_action_is_told_which_there_are(project, tree):
    tree.write("x.card", "ctl 1.0.0 script deploy", "ctl 1.0.0 script rollback")
    async with Crib(project) as crib:
        crib._catalog.add_source(tree.folder("scripts"))
        result = await crib.call(Call(name="ctl.destroy"))
    assert result.error.kind is Kind.NOT_FOUND
    assert "ctl has the actions ctl.deploy, ctl.rollback" in result.error.message


@pytest.mark.parametrize(
    ("word", "off"),
    [
        ("ctl", {"deploy", "rollback"}),
        ("project/ctl", {"deploy", "rollback"}),
        ("ctl@1.0.0", {"deploy", "rollback"}),
        ("ctl.rollback", {"rollback"}),
        ("project/ctl.rollback@1.0.0", {"rollback"}),
        ("ctl-rollback", {"rollback"}),
    ],
)
def test_a_tool_is_switched_off_with_all_its_actions_and_an_action_alone(tree, word, off):
    tree.write("x.card", "ctl 1.0.0 script deploy", "ctl 1.0.0 script rollback")
    catalog = Catalog(frozenset({word}), "disabled")
    catalog.add_source(tree.folder("project"))
    assert {name for name in ("deploy", "rollback") if not catalog.find(f"ctl.{name}").enabled} == off
    assert messages(catalog) == []


NAMES = ("run", "run-it", "run_it", "run.it")
SPACES = ("project", "user", "system")
KEPT = st.tuples(
    st.sampled_from(NAMES[:3]),
    st.sampled_from(SPACES),
    st.sampled_from(["1.0.0", "2.0.0"]),
    st.sampled_from(["", "it"]),
)


@given(st.lists(KEPT, max_size=10), st.sampled_from(SPACES))
def test_a_lookup_below_a_space_stays_below_it_for_all_contents(kept, space):
    catalog, there = Catalog(), {}
    lists = {bundle: ToolList(rank) for rank, bundle in enumerate(SPACES)}
    for bundle, tools in lists.items():
        catalog.add_source(LateSource(tools.rank, lambda tools=tools: [tools], bundles=[bundle]))
    for name, bundle, version, action in kept:
        run = file_run(action=action)
        tool = Tool(name=name, description="", parameters={}, run=run, bundle=bundle, version=version)
        if tool.address not in there:
            lists[bundle].add(tool)
            there[tool.address] = tool
    allowed = SPACES[SPACES.index(space) :]
    for before, name, after in product(("", "project/", "user/", "system/"), NAMES, ("", "@1.0.0", "@2.0.0")):
        entry = catalog.find_below(f"{before}{name}{after}", space)
        assert entry is None or entry.tool.bundle in allowed
    for slug in ("run", "run-it"):
        best = next((b for b in allowed if any(t.slug == slug and t.bundle == b for t in there.values())), None)
        entry = catalog.find_below(slug, space)
        assert (None if entry is None else entry.tool.bundle) == best
