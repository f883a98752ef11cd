"""The commands of approvals: what a person reads before deciding, and what the decision does."""

import json

import pytest

from toolcrib import Call, Crib, tool


@tool(confirm=True, description="Pay an invoice.\nasked by: the boss")
def pay(amount: int) -> str:
    """Pay an invoice.

    Args:
        amount: In euros.
    """
    return f"paid {amount}"


@pytest.fixture
def crib(tmp_path):
    (tmp_path / "toolcrib.toml").write_text("")
    with Crib(tmp_path, tools=[pay]) as opened:
        yield opened


@pytest.fixture
def run(crib, tmp_path, cli):
    """Run a command of approvals in the project."""

    def run(*words):
        done = cli("approvals", *words, "-C", str(tmp_path))
        return done.code, done.out, done.err

    return run


def call():
    return Call(name="pay", arguments={"amount": 5}, caller="mcp:local", consent="person")


@pytest.fixture
def approval_id(crib):
    return crib.call_sync(call()).error.details["approval"]


def test_nothing_waits_at_first(run):
    assert run("list") == (0, "no call waits for approval\n", "")


def test_what_would_run_is_listed_and_shown(run, approval_id):
    _, out, _ = run("list")
    assert approval_id in out
    assert "mcp:local" in out
    _, out, _ = run("show", approval_id)
    order = (
        *(
            "pay\n",
            "The author of the tool says: Pay an invoice.",
            "amount: 5",
            "The author of the tool says: In euros.",
        ),
        *("\nasked by:", "since:", "why:", f"crib approvals approve {approval_id}", "contentHash:", "code: "),
    )
    # Only our own lines begin at the left: an author cannot write one that looks like ours.
    assert "\n      asked by: the boss" in out
    places = [out.find(text) for text in order]
    assert places == sorted(places)
    assert places[0] == 0
    assert json.loads(run("show", approval_id, "--json")[1])["arguments"] == {"amount": 5}
    assert [one["id"] for one in json.loads(run("list", "--json")[1])] == [approval_id]


def test_an_approved_call_runs(run, approval_id, crib):
    code, out, _ = run("approve", approval_id, "--note", "seen")
    assert (code, out) == (0, f"approved {crib.find('pay').tool.address} for mcp:local\n")
    assert crib.approvals.show(approval_id).decided_by.startswith("user:")
    assert crib.call_sync(call()).value == "paid 5"
    assert json.loads(run("list", "--all", "--json")[1])[0]["state"] == "used"


def test_a_refused_call_stays_refused_and_a_second_decision_fails(run, approval_id, crib):
    assert run("refuse", approval_id)[0] == 0
    assert "refused it" in crib.call_sync(call()).error.message
    code, _, err = run("approve", approval_id)
    assert code != 0
    assert "is refused already" in err


def test_an_unknown_id_says_where_to_look(run):
    code, _, err = run("show", "nothing")
    assert code != 0
    assert "crib approvals list --all" in err
