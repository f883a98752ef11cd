"""Grants for one tool, one bundle or every tool: who gets what, what is offered, and what is told of a line that is wrong."""

import re
from dataclasses import replace

import pytest

from sample_tools import http_run
from toolcrib import Context, Crib, Cure, Kind, SettingsError, tool, tool_of
from toolcrib.core.grants import Grants
from toolcrib.core.sources import seen_through
from toolcrib.features.access.view import make_view
from toolcrib.lib.names import function_name, new_id

SCRIPT = '#!/bin/bash\n# Find lines of the log.\n#\n# Usage: grep-log.sh [WORD]\ngrep -c "${1:-x}" log.txt || true\n'


@tool(requires=["mail.send"])
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool(requires=["mail.send", "fs.read"])
def forward(to: str) -> str:
    """Forward a file."""
    return f"forwarded to {to}"


def write_send(folder):
    """Another tool of the same name, in a file."""
    folder.mkdir(exist_ok=True)
    code = '__requires__ = ["mail.send"]\n\n\ndef send(to: str) -> str:\n    """Send."""\n    return to\n'
    (folder / "send.py").write_text(code)


def offered(crib: Crib) -> set[str]:
    return {each.name for each in crib.offered()}


def messages(crib: Crib) -> list[str]:
    return [problem.message for problem in crib.problems]


@pytest.fixture
def script(project):
    (project / "tools").mkdir(exist_ok=True)
    (project / "tools" / "grep-log.sh").write_text(SCRIPT)
    return project


def test_a_grant_for_one_script_opens_nothing_to_the_built_in_shell(script):
    (script / "toolcrib.toml").write_text('[grants]\n"grep-log" = ["shell.execute"]\n')
    with Crib(script) as crib:
        assert {"grep-log", "read_file"} <= offered(crib)
        assert "shell" not in offered(crib)
        assert crib.explain("grep-log").allowed
        refused = crib.call_sync("shell", command="true")
    assert refused.error.kind is Kind.CAPABILITY_MISSING
    assert refused.error.details["missing"] == ["shell.execute"]


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        ({"send": ["mail.send"]}, {"send"}),
        ({"host/send": ["mail.send"]}, {"send"}),
        ({"host/send@1.0.0": ["mail.*"]}, {"send"}),
        ({"send@1.0.0": ["*"]}, {"send"}),
        ({"host/*": ["mail.send"]}, {"send", "forward"}),
        ({"*": ["mail.send"]}, {"send"}),
        ({"*": ["mailbox.*", "messages.*"]}, set()),
        ({"*": ["mail.send"], "forward": ["fs.read"]}, {"send", "forward"}),
        ({"send": ["mail.send"], "forward": ["mail.send"], "*": []}, {"send"}),
        ({"send@2.0.0": ["mail.send"], "tools/send": ["mail.send"], "tools/*": ["mail.send"]}, set()),
        ({}, set()),
    ],
)
def test_a_tool_has_what_every_line_says_that_means_it(crib_of, lines, allowed):
    crib = crib_of(send, forward, grants=lines, builtins={"enabled": False})
    assert {name for name in ("send", "forward") if crib.explain(name, to="Ada").allowed} == allowed
    assert offered(crib) == allowed
    assert {export.tool.name for export in crib.export("openai")} == allowed
    prompt = crib.prompt("text").text
    assert {name for name in ("send", "forward") if name in prompt} == allowed
    assert {each.name for each in crib.find_tools("send or forward a letter or a file")} == allowed


def test_explain_names_the_line_that_allows_and_the_one_to_write(script):
    (script / "toolcrib.toml").write_text('[grants]\n"tools/*" = ["shell.*"]\n"send" = ["mail.send"]\n')
    with Crib(script, tools=[send, forward]) as crib:

        def capabilities(name, **arguments):
            found = crib.explain(name, arguments).findings
            return next(each for each in found if each.gate == "capabilities")

        assert (
            capabilities("grep-log").granted
            == 'shell.execute by "tools/*" = ["shell.*"], grants."tools/*" in toolcrib.toml'
        )
        assert capabilities("read_file").granted == 'fs.read by "*" = ["fs.*"], the default of grants."*"'
        assert capabilities("forward").verdict.cure.operator == (
            'write "forward" = ["mail.send"] under [grants] in toolcrib.toml, or for one call: --grant mail.send'
        )
        assert capabilities("forward").verdict.where == 'the default of grants."*"'
    with Crib(tools=[send, forward], grants={"forward": ["fs.read"]}) as crib:
        cure = next(each.verdict.cure for each in crib.explain("forward").findings if each.gate == "capabilities")
    assert cure.operator.startswith('add "mail.send" to "forward" under [grants] in toolcrib.toml')


def test_several_capabilities_are_listed_in_what_explain_says(crib_of):
    def finding(**grants):
        crib = crib_of(forward, grants=grants)
        return next(each for each in crib.explain("forward", to="Ada").findings if each.gate == "capabilities")

    line = '"forward" = ["fs.read", "mail.send"], grants."forward" in the host program'
    assert finding(forward=["fs.read", "mail.send"]).granted == f"fs.read by {line}; mail.send by {line}"
    assert finding(**{"*": []}).verdict.cure == Cure(
        'write "forward" = ["fs.read", "mail.send"] under [grants] in toolcrib.toml, '
        "or for one call: --grant fs.read --grant mail.send",
        "ask the operator to grant it",
        administrator='write "forward" = ["fs.read", "mail.send"] under [grants] in toolcrib.toml',
    )


def test_the_refusal_of_an_adapter_lists_what_is_missing_by_the_name_as_it_is_written():
    @tool(name="größe", requires=["b.two", "a.one"])
    def size() -> int:
        """Measure."""
        return 1

    refused = Grants(means=lambda *_: True).refusal(tool_of(size), ["b.two", "a.one"])
    assert refused.message.startswith('größe requires a.one, b.two, which is not granted; write "größe" = ')
    assert refused.details["missing"] == ["a.one", "b.two"]


def test_a_tool_may_be_granted_by_the_name_that_models_are_shown(crib_of):
    @tool(name="größe", requires=["mail.send"])
    def size() -> int:
        """Measure."""
        return 1

    shown = function_name("größe")
    assert shown != "größe"
    assert crib_of(size, grants={shown: ["mail.send"]}).explain("größe").allowed
    assert not crib_of(size, grants={f"{shown}x": ["mail.send"]}).explain("größe").allowed


def test_a_stored_tool_that_reaches_servers_needs_no_grant_for_it_and_a_file_does():
    for spelling, needed in (("dollars", {"mail.send"}), ("braces", {"net.http", "mail.send"})):
        one = replace(tool_of(send), run=http_run(spelling=spelling), requires=frozenset({"net.http", "mail.send"}))
        assert Grants({}).missing(one) == needed
        assert Grants({}).missing(one, frozenset({"fs.read"})) == {"fs.read"}


async def test_a_tool_that_may_use_something_lends_it_to_no_tool_it_calls(crib_of):
    @tool(requires=["mail.send"])
    async def outer(context: Context) -> str:
        """Call another one."""
        return str((await context.call("send", to="Ada")).error.kind)

    crib = crib_of(outer, send, grants={"outer": ["mail.send"]})
    assert (await crib.call("outer")).value == "CAPABILITY_MISSING"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            {"send": ["shell.exec"]},
            """grants."send" in the host program: no tool requires 'shell.exec'; did you mean shell.execute?""",
        ),
        ({"*": ["fs.raed"]}, """grants."*" in the host program: no tool requires 'fs.raed'; did you mean fs.read?"""),
        (
            {"send": ["net.htp"]},
            """grants."send" in the host program: no tool requires 'net.htp'; did you mean net.http?""",
        ),
    ],
)
def test_a_misspelt_capability_keeps_the_crib_from_opening(lines, told):
    with pytest.raises(SettingsError) as refused:
        Crib(tools=[send], grants=lines)
    assert refused.value.message == told


async def test_a_capability_near_one_of_ours_is_a_name_like_any_other_where_a_tool_requires_it(crib_of):
    @tool(requires=["net.https"])
    def look(url: str) -> str:
        """Look."""
        return url

    crib = crib_of(look, grants={"look": ["net.https"]})
    assert (await crib.call("look", url="x")).ok
    assert messages(crib) == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ({"sedn": ["mail.send"]}, 'grants."sedn" in the host program: there is no such tool; did you mean send?'),
        (
            {"shop/*": ["mail.send"]},
            'grants."shop/*" in the host program: there is no such tool; see the names with: crib list',
        ),
        (
            {"send": ["mail.sent"]},
            """grants."send" in the host program: no tool requires 'mail.sent'; did you mean mail.send?""",
        ),
        (
            {"send": ["post.*"]},
            """grants."send" in the host program: no tool requires 'post.*'; see what tools require with: crib list""",
        ),
    ],
)
def test_a_line_that_grants_nothing_is_a_problem(crib_of, lines, told):
    assert messages(crib_of(send, grants=lines)) == [told]


def test_a_name_alone_means_the_tool_that_is_called_by_it_and_no_other_of_that_name(project):
    write_send(project / "tools")
    with Crib(project, tools=[send], grants={"send": ["mail.send"]}) as crib:
        assert crib.explain("send", to="Ada").allowed
        assert crib.explain("host/send", to="Ada").allowed
        refused = crib.explain("tools/send", to="Ada")
        assert not refused.allowed
        cure = next(each.verdict.cure for each in refused.findings if each.gate == "capabilities")
        assert cure.operator == (
            'write "tools/send" = ["mail.send"] under [grants] in toolcrib.toml, or for one call: --grant tools/send:mail.send'
        )
        assert [message for message in messages(crib) if "grants" in message] == []
        told = 'several tools are called so, and it means host/send@1.0.0 alone; write "host/send" or "tools/send"'
        assert [*crib.grants.warnings(crib.unstored_entries)] == [f'grants."send" in the host program: {told}']
    for lines, allowed in (
        ({"host/send": ["mail.send"]}, {"host/send"}),
        ({"tools/send": ["mail.send"]}, {"tools/send"}),
        ({"host/send": ["mail.send"], "tools/send": ["mail.send"]}, {"host/send", "tools/send"}),
    ):
        with Crib(project, tools=[send], grants=lines) as crib:
            names = ("host/send", "tools/send")
            assert {name for name in names if crib.explain(name, to="Ada").allowed} == allowed, lines
            assert [*crib.grants.warnings(crib.unstored_entries)] == [], lines


async def test_a_tool_that_takes_over_a_name_while_the_crib_runs_takes_the_grant_from_the_one_behind_it(
    crib_of, project
):
    write_send(project / "tools")
    crib = crib_of(project=project, grants={"send": ["mail.send"]})
    assert (await crib.call("tools/send", to="Ada")).value == "Ada"
    crib.add(send)
    assert (await crib.call("send", to="Ada")).value == "sent to Ada"
    assert (await crib.call("tools/send", to="Ada")).error.kind is Kind.CAPABILITY_MISSING


def test_a_broken_file_keeps_the_grant_that_was_written_for_it(project):
    (project / "first").mkdir()
    (project / "first" / "send.py").write_text("def send(:\n")
    write_send(project / "second")
    settings = {"catalog": {"folders": ["first", "second"]}, "grants": {"send": ["mail.send"]}}
    with Crib(project, **settings) as crib:
        assert not crib.explain("second/send", to="Ada").allowed
        (project / "first" / "send.py").unlink()
        assert crib.explain("second/send", to="Ada").allowed


def test_a_name_alone_means_the_same_tool_for_a_caller_that_sees_only_another_one(crib_of, project):
    write_send(project / "tools")
    crib = crib_of(send, project=project, grants={"send": ["mail.send"]})
    with seen_through(make_view(bundles=["tools"])):
        assert crib.require("send").tool.address == "tools/send@1.0.0"
        assert not crib.explain("send", to="Ada").allowed
    with seen_through(make_view(bundles=["host"])):
        assert crib.explain("send", to="Ada").allowed


def test_a_name_alone_means_every_version_and_one_with_a_version_that_one(crib_of):
    old = replace(tool_of(send), version="0.9.0")
    for lines, allowed in (
        ({"send": ["mail.send"]}, {"0.9.0", "1.0.0"}),
        ({"send@0.9.0": ["mail.send"]}, {"0.9.0"}),
        ({"host/send@1.0.0": ["mail.send"]}, {"1.0.0"}),
        ({"send@1.0": ["mail.send"], "send@0-9-0": ["mail.send"]}, set()),
    ):
        crib = crib_of(old, send, grants=lines)
        found = {version for version in ("0.9.0", "1.0.0") if crib.explain(f"send@{version}", to="Ada").allowed}
        assert found == allowed, lines


def test_a_bundle_is_meant_by_its_name_letter_for_letter(crib_of):
    tools = [replace(tool_of(send), bundle=bundle) for bundle in ("my_tools", "my-tools", "My_tools")]
    crib = crib_of(*tools, grants={"my_tools/*": ["mail.send"]})
    assert [each.bundle for each in tools if crib.explain(each.address, to="Ada").allowed] == ["my_tools"]
    crib = crib_of(*tools, grants={"my-tools/send": ["mail.send"]})
    assert [each.bundle for each in tools if crib.explain(each.address, to="Ada").allowed] == ["my-tools"]
    assert messages(crib_of(tools[0], grants={"my-tools/*": ["mail.send"]})) == [
        'grants."my-tools/*" in the host program: there is no such tool; see the names with: crib list'
    ]


def test_the_name_of_a_bundle_is_no_name_of_its_tools_nor_the_other_way_round(crib_of):
    crib = crib_of(replace(tool_of(send), bundle="forward"), forward, grants={"forward": ["mail.*"]})
    assert crib.explain("forward", to="Ada").allowed
    assert not crib.explain("send", to="Ada").allowed
    crib = crib_of(replace(tool_of(send), bundle="forward"), forward, grants={"forward/*": ["mail.*"]})
    assert crib.explain("send", to="Ada").allowed
    assert not crib.explain("forward", to="Ada").allowed


def test_the_name_of_a_tool_with_actions_means_those_of_the_first_file_alone(project):
    script = """tool_id: git
tool_type: subprocess
version: "1.0.0"
description: Work with a repository.
executor_id: subprocess
requires: [mail.send]
config: {command: echo}
actions: {ACTION: {description: Do it.}}
"""
    for folder, action in (("first", "commit"), ("second", "push")):
        (project / folder).mkdir()
        (project / folder / "git.yaml").write_text(script.replace("ACTION", action))
    folders = {"folders": ["first", "second"]}
    for word, allowed in (
        ("git", {"git.commit"}),
        ("git.push", {"git.push"}),
        ("git.commit", {"git.commit"}),
        ("second/git", {"git.push"}),
        ("git-push", {"git.push"}),
    ):
        with Crib(project, catalog=folders, grants={word: ["mail.*", "shell.*"]}) as crib:
            assert messages(crib) == []
            found = {name for name in ("git.commit", "git.push") if not crib.grants.missing(crib.require(name).tool)}
            assert found == allowed, word


@pytest.mark.parametrize("has_file", [True, False])
def test_no_imported_bundle_takes_over_what_was_granted_to_a_name(project, has_file):
    if has_file:
        (project / "tools" / "price.py").write_text(
            'import os\n\n\ndef price() -> int:\n    """Tell it."""\n    return len(os.environ[\'SHOP_KEY\'])\n'
        )
    settings = {
        "environment": {"SHOP_KEY": "k-4411", "PATH": "/usr/bin:/bin"},
        "http_tools": {"hosts": ["127.0.0.1:9"]},
        "egress": {"private": ["127.0.0.1:9"]},
    }
    with Crib(project, access={"variables": ["price:SHOP_KEY"]}, **settings) as crib:
        bundle = new_id()
        crib.bundles.put_bundle(bundle, {"slug": "aaa", "displayName": "A", "isEnabled": True})
        document = {
            "schemaVersion": "1",
            "displayName": "price",
            "description": "Tell it.",
            "type": "http",
            "isEnabled": True,
            "argSchema": {"type": "object", "additionalProperties": False},
            "outputSchema": {},
            "impl": {"urlTemplate": "http://127.0.0.1:9/${env:SHOP_KEY}"},
        }
        crib.bundles.put_tool(bundle, "price", "v1", document)
        refused = crib.call_sync("aaa/price")
        assert refused.error.kind is Kind.CAPABILITY_MISSING
        assert "add 'aaa/price:SHOP_KEY' to access.variables in toolcrib.toml" in refused.error.message
        if has_file:
            assert crib.call_sync("price").value == 6
        else:
            assert crib.call_sync("price").error.kind is Kind.CAPABILITY_MISSING
        assert not crib.grants.missing(crib.require("aaa/price").tool)
    with Crib(project, access={"variables": ["aaa/price:SHOP_KEY"]}, **settings) as crib:
        # It is sent, and the port is closed.
        assert crib.call_sync("aaa/price").error.kind is Kind.TRANSIENT
    with Crib(project, grants={"price@v1": ["net.http"]}, **settings) as crib:
        assert (
            'grants."price@v1" in the host program: a name alone means no tool of a stored bundle; write "aaa/price@v1"'
            in (messages(crib))
        )


@pytest.mark.parametrize(
    ("owner", "told"),
    [
        ("pri*ce", "a name is not matched by parts of it"),
        ("*/price", "no tool is called so"),
        ("/price", "no tool is called so"),
        ("price@", "no tool is called so"),
        ("a b", "no tool is called so"),
    ],
)
def test_a_variable_for_what_no_tool_is_called_is_refused(owner, told):
    with pytest.raises(SettingsError, match=re.escape(f"variables: '{owner}:KEY': {told}")):
        Crib(access={"variables": [f"{owner}:KEY"]})


def test_what_comes_with_toolcrib_and_stored_bundles_may_be_granted_by_name(crib_of, project):
    crib = crib_of(
        project=project, grants={"builtin/*": ["net.http"], "shell": ["shell.execute"], "*": ["fs.*", "rye.execute"]}
    )
    assert messages(crib) == []
    assert {"fetch", "shell"} <= offered(crib)


def test_an_adapter_that_names_a_tool_without_its_grants_says_which_line_to_write(crib_of):
    from toolcrib.adapters import OpenAIChat

    crib = crib_of(send)
    assert "send" not in str(OpenAIChat(crib).definitions)
    with pytest.raises(Exception, match='send requires mail.send, which is not granted; write "send" = ') as refused:
        OpenAIChat(crib, tools=["send"])
    assert refused.value.kind is Kind.CAPABILITY_MISSING
