"""Names as people and models spell them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_tools import file_run, host_tool
from toolcrib import Kind, Tool, ToolError
from toolcrib.lib.names import (
    COMPARED_NAMES,
    action_of,
    did_you_mean,
    function_name,
    function_names,
    read_address,
    version_order,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("add", (None, "add", None)),
        ("math/add", ("math", "add", None)),
        ("math/add@1.0.0", ("math", "add", "1.0.0")),
        ("add@2", (None, "add", "2")),
        ("a@b/add@2", ("a@b", "add", "2")),
        ("a/b/add", ("a/b", "add", None)),
        ("", (None, "", None)),
        ("/add", (None, "add", None)),
        ("add@", (None, "add", None)),
        ("math/", ("math", "", None)),
        ("add@1@2", (None, "add", "1@2")),
    ],
)
def test_an_address_is_taken_apart(text, address):
    assert read_address(text) == address


@given(st.text(min_size=1), st.text("ab-_ü1", min_size=1), st.text("ab.-1", min_size=1))
def test_an_address_is_read_as_it_was_written_with_any_name_of_a_bundle(bundle, name, version):
    assert read_address(f"{bundle}/{name}@{version}") == (bundle, name, version)


@pytest.mark.parametrize("name", ["weather", "_x", "Get-It_2", "x" * 64])
def test_a_name_that_every_provider_takes_stays_as_it_is(name):
    assert function_name(name) == name


@given(st.text(st.characters(), min_size=1, max_size=80))
def test_every_name_has_a_form_that_every_provider_takes(name):
    visible = function_name(name)
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", visible)
    assert function_names([name]) == {visible: name}


@given(st.sets(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=64), max_size=20))
def test_different_names_stay_different_to_models_and_can_be_read_back(names):
    shown = function_names(names)
    assert sorted(shown.values()) == sorted(names)
    assert all(function_name(name) == visible for visible, name in shown.items())


def test_names_that_would_look_alike_to_a_model_are_refused():
    hidden = function_name("天気")
    with pytest.raises(ToolError, match="rename one") as caught:
        function_names(["天気", hidden])
    assert caught.value.kind is Kind.CONFLICT


def test_the_nearest_names_are_suggested():
    known = ["read_file", "write_file", "fetch", "shell"]
    assert did_you_mean("read_fil", known) == "did you mean read_file or write_file?"
    assert did_you_mean("fetsh", known) == "did you mean fetch?"
    assert did_you_mean("zzz", known) == ""


def test_a_hint_costs_little_however_long_the_name_or_the_list():
    known = [f"{letter}tool_{number}" for number in range(5_000) for letter in "abc"]
    assert did_you_mean("xtool_1", known) == ""
    assert did_you_mean("btool_1x", known).startswith("did you mean btool_1 or ")
    assert len(known) > COMPARED_NAMES
    assert did_you_mean("a" * 1_000_000, known) == ""
    assert did_you_mean("", known) == ""


VERSIONS = [
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-rc2",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
    "10.0.0",
]


@given(st.permutations(VERSIONS))
def test_versions_are_sorted_number_by_number_and_previews_before_what_they_preview(versions):
    assert sorted(versions, key=version_order) == VERSIONS


@given(st.lists(st.text(st.characters(categories=["L", "N"], include_characters="-."), min_size=1), max_size=5))
def test_all_versions_can_be_sorted(versions):
    assert len(sorted(versions, key=version_order)) == len(versions)


@pytest.mark.parametrize(
    ("name", "action", "parts"),
    [
        ("deploy-service-roll-back", "roll_back", ("deploy-service", "roll-back")),
        ("my_ctl_deploy", "deploy", ("my-ctl", "deploy")),
        ("deploy", "", None),
        ("deploy", "deploy", None),
        ("something-else", "deploy", None),
    ],
)
def test_an_action_is_taken_apart(name, action, parts):
    run = file_run(action=action)
    assert action_of(Tool(name=name, description="", parameters={}, run=run)) == parts


def test_what_is_no_action_is_not_taken_apart():
    assert action_of(host_tool("a-b")) is None
