"""`toolcrib.testing`: the kit that authors of tools test them with."""

import textwrap
from dataclasses import replace

import pytest

from toolcrib import Context, Crib, Kind, ToolError, testing, tool, tool_of
from toolcrib.testing import (
    Case,
    FakeContext,
    call_tool,
    call_tool_sync,
    cases_of,
    check,
    check_sync,
    load_cases,
)


@tool
async def tell(word: str, context: Context) -> dict[str, str]:
    """Tell the client a word."""
    await context.session.send(word)
    context.audit("told", {"word": word})
    return {"told": word}


@tool(confirm=True, modes=["voice"])
def wipe(what: str) -> str:
    """Wipe something out."""
    return f"wiped {what}"


def greet_back(name: str) -> str:
    """Greet somebody who greeted."""
    return f"Hello to you, {name}!"


GREETER = replace(tool_of(greet_back), examples=({"name": "Ada"}, {"name": "Bo"}))
GREET = '''
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"
'''
CASES = """
- name: a name is greeted
  arguments: {name: Ada}
  expect: {value: "Hello, Ada!"}

- name: nobody is nobody
  expect:
    error: {type: VALIDATION, message_contains: name}
"""


@pytest.fixture
def greeting(project):
    """A project with a plain file and cases for it."""
    (project / "tools" / "greet.py").write_text(GREET)
    (project / "tests" / "cases").mkdir(parents=True)
    (project / "tests" / "cases" / "greet.yaml").write_text(CASES)
    return project


def test_the_example_of_its_documentation_runs():
    beginning = testing.__doc__.split("\n\n", 1)[1].split("The examples that")[0]
    exec(compile(textwrap.dedent(beginning), "example", "exec"), {})


async def test_a_made_up_client_takes_down_what_it_is_sent_and_what_is_put_on_record(crib_of):
    client = FakeContext()
    result = await call_tool(crib_of(tell), "tell", {"word": "hello"}, context=client)
    assert result.value == {"told": "hello"}
    assert client.sent == ["hello"]
    assert client.audited == [{"event": "told", "data": {"word": "hello"}}]
    await call_tool(crib_of(tell), "tell", {"word": "bye"}, context=client)
    assert client.sent == ["hello", "bye"]
    assert [line["data"] for line in client.audited] == [{"word": "hello"}, {"word": "bye"}]


def test_what_is_on_record_is_read_from_the_journal_of_a_project_as_well(project):
    client = FakeContext()
    with Crib(project, tools=[tell]) as crib:
        crib.call_sync("tell", word="nobody hears that")
        call_tool_sync(crib, "tell", {"word": "hello"}, context=client)
    assert client.audited == [{"event": "told", "data": {"word": "hello"}}]


@pytest.mark.parametrize(("send", "kind"), [("fails", Kind.TRANSIENT), ("closed", Kind.SESSION_INACTIVE)])
async def test_a_client_can_lose_messages_or_have_gone_away(crib_of, send, kind):
    client = FakeContext(send=send)
    result = await call_tool(crib_of(tell), "tell", {"word": "hello"}, context=client)
    assert result.error.kind is kind
    assert (client.sent, client.audited) == ([], [])


def test_a_client_refuses_unknown_ways_to_treat_messages():
    with pytest.raises(ValueError, match="send is 'lost'; write one of ok, fails, closed"):
        FakeContext(send="lost")


async def test_a_call_is_confirmed_in_a_mode_that_the_tool_allows_unless_the_client_says_otherwise(crib_of):
    crib = crib_of(wipe)
    assert (await call_tool(crib, "wipe", {"what": "it"})).value == "wiped it"
    refused = await call_tool(crib, "wipe", {"what": "it"}, context=FakeContext(confirm=False))
    assert refused.error.kind is Kind.CONFIRMATION_REQUIRED
    restricted = await call_tool(crib, "wipe", {"what": "it"}, context=FakeContext(mode="text"))
    assert restricted.error.kind is Kind.MODE_RESTRICTED


def test_an_unknown_tool_is_an_answer_to_a_call_and_an_error_of_a_check():
    with Crib(tools=[tell]) as crib:
        assert call_tool_sync(crib, "tel").error.kind is Kind.NOT_FOUND
        for ask in (check_sync, cases_of):
            with pytest.raises(ToolError, match=r"Tool 'tel' not found; did you mean tell\?"):
                ask(crib, "tel")


async def test_a_check_names_every_difference_of_every_case(crib_of):
    cases = [
        Case(name="first", arguments={"word": "a"}, expect={"value": {"told": "b"}, "sent": []}, place="cases.yaml:1"),
        Case(name="second", arguments={"word": "a"}, expect={"ok": True}),
        Case(name="third", expect={"ok": True}),
    ]
    with pytest.raises(AssertionError) as caught:
        await check(crib_of(tell), "tell", cases)
    lines = str(caught.value).splitlines()
    assert lines[:3] == [
        "tell: not as expected",
        'cases.yaml:1: first: value.told: expected "b", got "a"',
        'cases.yaml:1: first: sent: expected 0 items, got 1 item: ["a"]',
    ]
    assert lines[3].startswith("tell: third: ok: expected true, got false: VALIDATION: ")
    assert len(lines) == 4
    [result] = await check(crib_of(tell), "tell", cases[1:2])
    assert result.passed


def test_what_was_not_tried_has_not_passed(project):
    @tool(requires=["net.http"])
    def far() -> str:
        """Reach far."""
        return "far"

    with Crib(tools=[far, tell]) as crib:
        with pytest.raises(AssertionError, match="far: a case: not tried: needs net.http; "):
            check_sync(crib, "far", [Case(name="a case")])
        with pytest.raises(AssertionError, match="tell has no examples and no cases; write tests/cases/tell.yaml"):
            check_sync(crib, "tell")


def test_the_cases_of_a_project_are_found_by_name_and_run_in_the_sandbox(greeting):
    cases = cases_of(greeting, "greet")
    assert list(map(str, cases)) == ["a name is greeted", "nobody is nobody"]
    assert [case.place for case in cases] == ["tests/cases/greet.yaml:2", "tests/cases/greet.yaml:6"]
    assert [case.expect for case in load_cases(greeting / "tests/cases/greet.yaml")] == [case.expect for case in cases]
    with Crib(greeting) as crib:
        results = check_sync(crib, "greet")
        assert cases_of(crib, "greet") == cases
    assert [result.passed for result in results] == [True, True]
    assert "sandbox" in results[0].result.meta


async def test_the_cases_of_a_project_run_on_a_loop_as_well(greeting, crib_of):
    assert len(await check(crib_of(project=greeting), "greet")) == 2


@pytest.mark.parametrize("case", cases_of(Crib(tools=[GREETER]), "greet_back"), ids=str)
def test_cases_are_parameters_of_a_test(case, request):
    assert request.node.callspec.id == case.name
    with Crib(tools=[GREETER]) as crib:
        check_sync(crib, "greet_back", [case])
