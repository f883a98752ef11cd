"""What the web page reads and changes beside the API: tokens, one's own runs, recorded cases, activity, and the doctor's report."""

from __future__ import annotations

import json

import pytest

from toolcrib import Cost, tool
from toolcrib.features.project.health_report import list_problems
from toolcrib.model.limits import Quota


@tool
def shout(text: str, api_key: str = "") -> str:
    """Say it in capitals."""
    return text.upper()


def needs_secret(name: str) -> dict[str, object]:
    """The document of a tool that cannot run before its secret is stored."""
    auth = {"type": "bearer", "token": "${secret:SKY_KEY}"}
    return {
        "schemaVersion": "toolcrib-1",
        "displayName": name,
        "description": f"Ask for {name}",
        "type": "http",
        "argSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "outputSchema": {},
        "impl": {"method": "GET", "urlTemplate": "https://sky.example/", "auth": auth},
    }


@pytest.fixture
def world(make_world):
    return make_world(shout)


def bearer(world, *scopes: str) -> dict[str, str]:
    return {"authorization": f"Bearer {world.crib.tokens.create('a person', scopes)[1]}"}


async def test_the_loopback_address_alone_neither_makes_nor_revokes_tokens(world):
    token, _ = world.crib.tokens.create("ci", ["read"])
    made = await world.client.post("/ui/access/tokens", {"name": "x", "scopes": ["read"]})
    revoked = await world.client.delete(f"/ui/access/tokens/{token.id}")
    assert [made.status, revoked.status] == [403, 403]
    assert [one.name for one in world.crib.tokens.list()] == ["ci"]


async def test_a_token_cannot_give_a_scope_that_it_lacks(world):
    manager = bearer(world, "manage", "read")
    refused = await world.client.post(
        "/ui/access/tokens", {"name": "x", "scopes": ["read", "approve"]}, headers=manager
    )
    made = await world.client.post(
        "/ui/access/tokens", {"name": "x", "scopes": ["read"], "days": 3, "limits": {"tags": ["a"]}}, headers=manager
    )
    assert refused.status == 403
    assert "you lack approve" in refused.json["detail"]
    assert world.crib.tokens.check(made.json["token"]).view.to_json() == {"tags": ["a"]}


@pytest.mark.parametrize(
    "wrong",
    [{"scopes": "read"}, {"scopes": [1]}, {"days": 0}, {"days": True}, {"limits": {"x": []}}, {"limits": {"tags": 1}}],
)
async def test_a_token_with_a_wrong_field_is_refused(world, wrong):
    body = {"name": "x", "scopes": ["read"], **wrong}
    refused = await world.client.post("/ui/access/tokens", body, headers=bearer(world, "manage", "read"))
    assert refused.status == 400
    assert len(world.crib.tokens.list()) == 1


async def test_tokens_and_secrets_are_listed_without_their_values(world):
    _, text = world.crib.tokens.create("ci", ["read"])
    world.crib.secrets.set("KEY", "s3cret-of-the-sky")
    listed = await world.client.get("/ui/access")
    assert [secret["name"] for secret in listed.json["secrets"]] == ["KEY"]
    assert b"s3cret-of-the-sky" not in listed.raw
    # The secret is what follows the id, and may have an underscore itself.
    assert text.split("_", 2)[2].encode() not in listed.raw


async def test_a_run_is_stored_masked_for_its_caller_alone(world):
    world.crib.secrets.set("KEY", "s3cret-of-the-sky")
    run = {"tool": "host/shout@1.0.0", "arguments": {"text": "a s3cret-of-the-sky", "api_key": "k"}, "ok": True}
    assert (await world.client.post("/ui/runs", {**run, "outcome": "A"})).status == 201
    mine = (await world.client.get("/ui/runs?tool=host/shout@1.0.0")).json["runs"]
    other = (await world.client.get("/ui/runs", headers=bearer(world, "invoke"))).json["runs"]
    assert [one["arguments"]["api_key"] for one in mine] == ["(hidden)"]
    assert [one["masked"] for one in mine] == [[["text"], ["api_key"]]]
    assert "s3cret-of-the-sky" not in json.dumps(mine)
    assert other == []
    await world.client.delete("/ui/runs")
    assert (await world.client.get("/ui/runs")).json["runs"] == []


async def test_a_run_says_where_values_were_masked_and_nothing_else(world):
    arguments = {
        "city": "Oslo",
        "list": [{"token": "t"}, "(hidden)"],
        "max_tokens": 5,
        "deep": {"password": "p", "ok": True},
    }
    await world.client.post("/ui/runs", {"tool": "x", "arguments": arguments, "ok": True})
    run = (await world.client.get("/ui/runs")).json["runs"][0]
    assert run["masked"] == [["list", "0", "token"], ["deep", "password"]]


async def test_the_oldest_runs_go_first(make_world):
    world = make_world(shout, run_history={"kept": 2})
    for text in ("a", "b", "c"):
        await world.client.post("/ui/runs", {"tool": "x", "arguments": {"text": text}, "ok": True})
    runs = (await world.client.get("/ui/runs")).json["runs"]
    assert [run["arguments"]["text"] for run in runs] == ["c", "b"]


async def test_runs_are_not_stored_where_the_settings_say_so_or_when_they_are_too_large(make_world):
    closed = make_world(shout, run_history={"enabled": False})
    refused = await closed.client.post("/ui/runs", {"tool": "x", "arguments": {}, "ok": True})
    assert refused.status == 409
    assert (await closed.client.get("/ui/runs")).json == {"enabled": False, "runs": []}


async def test_a_run_that_is_too_large_is_refused(world):
    large = {"tool": "x", "arguments": {"text": "x" * 70_000}, "ok": True}
    refused = await world.client.post("/ui/runs", large)
    assert refused.status == 413


async def test_a_recorded_case_is_checked_and_stands_in_the_file_that_crib_test_reads(world):
    case = {"tool": "shout", "name": "loud", "arguments": {"text": "a"}, "expect": {"ok": True, "value": "A"}}
    made = await world.client.post("/ui/cases", case)
    twice = await world.client.post("/ui/cases", case)
    empty = await world.client.post("/ui/cases", {**case, "name": "other", "expect": {}})
    unknown = await world.client.post("/ui/cases", {**case, "tool": "nothing"})
    assert made.json == {"file": "tests/cases/shout.json"}
    assert [twice.status, empty.status, unknown.status] == [400, 400, 404]
    written = json.loads((world.crib.settings.root / "tests" / "cases" / "shout.json").read_text())
    assert [one["name"] for one in written] == ["loud"]


async def test_activity_counts_calls_failures_and_times_by_tool_and_caller(world):
    await world.client.post("/call/shout", {"text": "a"})
    await world.client.post("/call/shout", {})
    found = (await world.client.get("/ui/activity?hours=1")).json
    assert [found["all"][key] for key in ("calls", "failed", "refused")] == [2, 1, 1]
    assert [(row["name"], row["holder"]) for row in found["callers"]] == [("local", "")]
    assert found["tools"][0]["p50"] is not None
    assert sum(span["calls"] for span in found["spans"]) == 2
    assert found["all"]["errors"] == {"VALIDATION": 1}
    assert [span["errors"] for span in found["spans"] if span["errors"]] == [{"VALIDATION": 1}]


async def test_activity_names_the_holder_of_a_token_and_what_its_calls_cost(make_world):
    @tool(cost=Cost(per_invocation=0.25, currency="EUR"))
    def paint() -> str:
        """Paint."""
        return "a picture"

    world = make_world(paint)
    token, text = world.crib.tokens.create("the painter", ["invoke"])
    for _ in range(2):
        await world.client.post("/call/paint", {}, headers={"authorization": f"Bearer {text}"})
    found = (await world.client.get("/ui/activity?hours=1")).json
    assert [(row["name"], row["holder"], row["costs"]) for row in found["callers"]] == [
        (token.id, "the painter", {"EUR": 0.5})
    ]
    assert found["tools"][0]["costs"] == found["all"]["costs"] == {"EUR": 0.5}


async def test_what_is_used_of_the_quota_of_a_token_is_listed_with_it(make_world):
    world = make_world(shout)
    token, text = world.crib.tokens.create("intern", ["invoke"], quota=Quota(calls=4, per="hour"))
    await world.client.post("/call/shout", {"text": "a"}, headers={"authorization": f"Bearer {text}"})
    usages = (await world.client.get("/ui/access")).json["usages"]
    assert {"subject": token.id, "unit": "calls", "per": "hour", "limit": 4.0, "used": 1.0, "name": "intern"} in usages


async def test_who_approves_reads_whose_token_it_is_and_who_may_only_read_does_not(world):
    token, _ = world.crib.tokens.create("night shift", ["invoke"])
    path = f"/ui/callers/{token.id}"
    assert (await world.client.get(path, headers=bearer(world, "approve"))).json == {"name": "night shift"}
    assert (await world.client.get(path, headers=bearer(world, "read"))).status == 403
    unknown = await world.client.get("/ui/callers/local", headers=bearer(world, "approve"))
    assert unknown.json == {"name": ""}


async def test_the_doctors_report_names_versions_sandbox_and_changed_settings(world):
    report = (await world.client.get("/ui/doctor")).json
    assert "toolcrib" in report["about"]
    assert {"plain", "network", "program"} == set(report["sandbox"])


async def test_what_keeps_tools_from_running_is_told_with_the_tools_as_the_command_check_tells_it(make_world):
    world = make_world(shout)
    world.crib.bundles.put_bundle(world.bundle, {"slug": "sky", "displayName": "Sky", "isEnabled": True})
    for slug, is_enabled in (("rain", True), ("wind", True), ("fog", False)):
        world.crib.bundles.put_tool(world.bundle, slug, "v1", needs_secret(slug) | {"isEnabled": is_enabled})
    found = (await world.client.get("/ui/obstacles")).json["obstacles"]
    assert "is not among the allowed hosts" in found[0]["reason"]
    assert "crib secret set SKY_KEY" in found[1]["reason"]
    assert [[tool["name"] for tool in one["tools"]] for one in found] == [["rain", "wind"]] * 2
    lines = list_problems(world.crib, world.crib.entries)
    assert [line.endswith(one["reason"]) for line, one in zip(lines, found, strict=True)] == [True, True]
    of_one = (await world.client.get("/ui/obstacles?name=wind")).json["obstacles"]
    assert [[tool["name"] for tool in one["tools"]] for one in of_one] == [["wind"]] * 2
    assert (await world.client.get("/ui/obstacles?name=shout")).json == {"obstacles": []}
    assert (await world.client.get("/ui/obstacles?name=snow")).status == 404


async def test_functions_of_the_host_program_are_listed_with_what_they_say_of_themselves(make_world):
    def count(context, arguments):
        """
        Count the words.

        All of them.
        """

    found = (await make_world(functions={"text.count": count}).client.get("/ui/functions")).json
    assert found == {
        "functions": [{"key": "echo", "description": ""}, {"key": "text.count", "description": "Count the words."}]
    }


async def test_a_caller_that_may_only_read_sees_neither_activity_nor_tokens_nor_functions_nor_the_report(world):
    reader = bearer(world, "read")
    paths = ("activity", "access", "doctor", "functions", "obstacles")
    statuses = [(await world.client.get(f"/ui/{path}", headers=reader)).status for path in paths]
    assert statuses == [403] * len(paths)
