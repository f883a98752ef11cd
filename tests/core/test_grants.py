"""Grants for one tool, one bundle or every tool: who gets what, what is offered, and what is told of a line that is wrong."""

from dataclasses import replace

import pytest

from toolcrib import Context, Crib, tool, tool_of
from toolcrib.core.grants import Grants
from toolcrib.lib.names import function_name
from toolcrib.model.errors import Cure, Kind, SettingsError
from toolcrib.model.tool import Http, Spelling

SCRIPT = '#!/bin/bash\n# Find lines of the log.\n#\n# Usage: grep-log.sh [WORD]\ngrep -c "${1:-x}" log.txt || true\n'


@tool(requires=["mail.send"])
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool(requires=["mail.send", "fs.read"])
def forward(to: str) -> str:
    """Forward a file."""
    return f"forwarded to {to}"


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
    )


def test_the_refusal_of_an_adapter_lists_what_is_missing_by_the_name_as_it_is_written():
    @tool(name="größe", requires=["b.two", "a.one"])
    def size() -> int:
        """Measure."""
        return 1

    refused = Grants().refusal(tool_of(size), ["b.two", "a.one"])
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
    stored = Http(calls=(), spelling=Spelling.DOLLARS)
    for run, needed in (
        (stored, {"mail.send"}),
        (replace(stored, spelling=Spelling.BRACES), {"net.http", "mail.send"}),
    ):
        one = replace(tool_of(send), run=run, requires=frozenset({"net.http", "mail.send"}))
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


def test_a_bare_name_that_several_tools_have_is_a_problem_and_an_address_is_none(project):
    other = '__requires__ = ["mail.send"]\n\n\ndef send(to: str) -> str:\n    """Send."""\n    return to\n'
    (project / "tools").mkdir(exist_ok=True)
    (project / "tools" / "send.py").write_text(other)
    with Crib(project, tools=[send], grants={"send": ["mail.send"]}) as crib:
        told = 'grants."send" in the host program: several tools are called so; write "host/send" or "tools/send"'
        assert told in messages(crib)
    with Crib(project, tools=[send], grants={"host/send": ["mail.send"]}) as crib:
        assert [message for message in messages(crib) if "grants" in message] == []
        assert crib.explain("send", to="Ada").allowed
        assert not crib.explain("tools/send", to="Ada").allowed


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
