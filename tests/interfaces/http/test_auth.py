"""Who may do what: tokens, scopes, the user of this machine, and how often."""

from __future__ import annotations

import pytest

from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.interfaces.http.guards import Rates
from toolcrib.toolkit.http.problems import Refusal

EVERY_DOOR = [
    ("GET", "/tools", "read"),
    ("GET", "/tools/search?q=x", "read"),
    ("GET", "/tools/bundles", "read"),
    ("GET", "{bundle}", "read"),
    ("GET", "{bundle}/tools", "read"),
    ("GET", "{tool}", "read"),
    ("PUT", "{bundle}", "manage"),
    ("PATCH", "{bundle}", "manage"),
    ("DELETE", "{bundle}", "manage"),
    ("PUT", "{tool}", "manage"),
    ("PATCH", "{tool}", "manage"),
    ("DELETE", "{tool}", "manage"),
    ("POST", "{tool}", "invoke"),
    ("POST", "{tool}/invoke", "invoke"),
    ("POST", "/call/none", "invoke"),
    ("POST", "/crib/explain", "invoke"),
    ("POST", "/crib/sessions", "invoke"),
    ("GET", "/crib/sessions/x", "invoke"),
    ("POST", "/crib/sessions/x/turn", "invoke"),
    ("DELETE", "/crib/sessions/x", "invoke"),
    ("GET", "/crib/results/00", "invoke"),
    ("GET", "/crib/tools", "read"),
    ("GET", "/crib/health", "read"),
    ("GET", "/openapi.json", "read"),
    ("GET", "/docs", "read"),
    ("GET", "/metrics", "read"),
]
SCOPES = ("read", "invoke", "manage")


@pytest.fixture
def closed(make_world):
    """An application that asks everybody for a token."""
    return make_world(open_to_loopback=False)


def at(world, path: str) -> str:
    return path.format(bundle=world.bundle_path(), tool=world.tool_path())


def bearing(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


async def test_no_door_opens_without_a_token(closed):
    for method, path, _ in EVERY_DOOR:
        reply = await closed.client.ask(method, at(closed, path), {"isEnabled": True})
        assert reply.status == 401, (method, path)
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json["kind"] == "AUTH"
    assert closed.files() == {}


async def test_every_door_asks_for_its_own_scope_and_no_other(closed):
    texts = {scope: closed.crib.tokens.create(scope, [scope])[1] for scope in SCOPES}
    for method, path, needed in EVERY_DOOR:
        for scope in SCOPES:
            reply = await closed.client.ask(method, at(closed, path), {"x": 1}, headers=bearing(texts[scope]))
            refused = reply.status == 403 and "insufficient_scope" in reply.headers.get("www-authenticate", "")
            assert refused == (scope != needed), (method, path, scope, reply.status)


async def test_without_a_token_a_missing_path_is_not_told_from_others(closed):
    assert (await closed.client.get("/nowhere")).status == 401
    assert (await closed.client.ask("TRACE", "/tools")).status == 401
    text = closed.crib.tokens.create("reader", ["read"])[1]
    assert (await closed.client.get("/nowhere", headers=bearing(text))).status == 404


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_watcher_needs_no_token(closed, path):
    assert (await closed.client.get(path)).status == 200


async def test_a_token_that_does_not_hold_is_refused_even_on_this_machine(world):
    for header in [
        "Bearer ",
        "Bearer",
        "Basic dXNlcjpwYXNz",
        "Bearer crib_0000000000000000_" + "A" * 43,
        "Bearer " + "x" * 10000,
        "bearer ünïcode",
        "crib_x",
        "",
    ]:
        reply = await world.client.get("/tools", headers={"Authorization": header})
        assert reply.status == 401, header
        assert reply.headers["www-authenticate"].startswith("Bearer")


async def test_a_token_holds_until_it_is_revoked(closed):
    token, text = closed.crib.tokens.create("laptop", ["read"])
    assert (await closed.client.get("/tools", headers=bearing(text))).status == 200
    assert (await closed.client.get("/tools", headers={"Authorization": f"bearer {text}"})).status == 200
    closed.crib.tokens.revoke(token.id)
    reply = await closed.client.get("/tools", headers=bearing(text))
    assert reply.status == 401
    assert text not in reply.raw.decode()


async def test_only_this_machine_is_let_in_without_a_token(world, client_for):
    for address in ["10.0.0.7", "::2", "8.8.8.8", "", "not-an-address", "127.0.0.1.evil"]:
        assert (await client_for(world.client.app, address=address).get("/tools")).status == 401, address


async def test_this_machine_is_let_in_where_the_server_listens_for_it_alone(world, client_for):
    for address in ["127.0.0.1", "127.8.8.8", "::1"]:
        assert (await client_for(world.client.app, address=address).get("/tools")).status == 200, address


async def test_a_request_that_was_passed_on_does_not_count_as_from_this_machine(world):
    for header in [
        "Forwarded",
        "Via",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "X-Real-IP",
        "X-Client-IP",
        "X-Cluster-Client-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
    ]:
        assert (await world.client.get("/tools", headers={header: "127.0.0.1"})).status == 401, header


async def test_a_public_name_asks_for_a_token_because_a_proxy_need_not_say_that_it_is_one(make_world, client_for):
    world = make_world(server={"hosts": ["crib.example", "127.0.0.1.crib.example"]})
    for host in ["crib.example", "crib.example:8765", "127.0.0.1.crib.example"]:
        assert (await client_for(world.client.app, host=host).get("/tools")).status == 401, host
    for host in ["localhost:8765", "127.0.0.1", "[::1]:1"]:
        assert (await client_for(world.client.app, host=host).get("/tools")).status == 200, host


async def test_too_many_requests_of_one_caller_are_told_when_to_come_again(make_world):
    world = make_world(server={"calls_per_minute": 3})
    replies = [await world.client.get("/crib/health") for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]
    assert replies[-1].json["kind"] == "RATE_LIMIT"
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 62
    text = world.crib.tokens.create("other", ["read"])[1]
    assert (await world.client.get("/crib/health", headers=bearing(text))).status == 200


def admitted(rates, caller, times):
    for number in range(times):
        try:
            rates.admit(caller)
        except Refusal:
            return number
    return times


@pytest.mark.parametrize("most", [60, 6_000])
def test_a_caller_regains_its_requests_with_time(most):
    now = [100.0]
    ledger = UsageLedger(None, clock=lambda: now[0])
    rates = Rates(most, lambda: ledger, clock=lambda: now[0])
    assert admitted(rates, "ann", most + 5) == most
    now[0] += 30
    assert admitted(rates, "ann", 1) == 0
    assert admitted(rates, "bob", 1) == 1
    now[0] += 32
    assert admitted(rates, "ann", most + 5) == most


def test_several_servers_of_a_project_admit_no_more_together_and_give_back_what_they_do_not_need():
    now = [100.0]
    ledger = UsageLedger(None, clock=lambda: now[0])
    first, second = (Rates(6_000, lambda: ledger, clock=lambda: now[0]) for _ in range(2))
    assert admitted(first, "ann", 1) == 1
    assert admitted(second, "ann", 7_000) == 5_990
    now[0] += 2
    # The nine that the first server had taken and not used are there again, for any of them.
    assert admitted(first, "ann", 20) == 9
    assert admitted(second, "ann", 20) == 0


def test_a_server_whose_ledger_fails_counts_alone(tmp_path):
    path = tmp_path / "limits.sqlite3"
    path.write_bytes(b"no database" * 200)
    ledger = UsageLedger(path)
    rates = Rates(60, lambda: ledger)
    assert admitted(rates, "ann", 70) == 60
