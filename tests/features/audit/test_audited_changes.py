"""What is in the audit trail: every decision and change, with its actor, over each interface."""

from __future__ import annotations

import getpass
import io
import json
import sys

import pytest

import app_lifespan
from app_lifespan import local_app
from toolcrib import Call, Crib, ToolError, tool
from toolcrib.features.access.sign_in import sign_in_of
from toolcrib.lib.audit_trail import ACTOR

BUNDLE = "019a8b7c-1d2e-7f3a-8b4c-5d6e7f8a9b0c"
TOOL = {
    "schemaVersion": "toolcrib-1",
    "isEnabled": True,
    "displayName": "Area",
    "description": "Area of a rectangle.",
    "argSchema": {"type": "object", "properties": {"width": {"type": "number"}}},
    "outputSchema": {},
    "type": "http",
    "impl": {"urlTemplate": "https://example.org/"},
}
USER = getpass.getuser()


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture
def crib(project):
    with Crib(project, tools=[pay], caller="ann") as opened:
        yield opened


def told(crib, *keys, **filters):
    """These facts of the events, the oldest first."""
    keys = keys or ("what", "about", "actor")
    return [tuple(event[key] for key in keys) for event in crib.audit.events(**filters)][::-1]


async def ask(app, method, path, body=None, token=None, query=b""):
    headers = [(b"host", b"127.0.0.1:8765")]
    headers += [] if body is None else [(b"content-type", b"application/json")]
    headers += [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query}
    scope |= {"headers": headers, "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8765)}
    sent = [{"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}]
    heard = []

    async def receive():
        return sent.pop()

    async def send(message):
        heard.append(message)

    await app(scope, receive, send)
    return heard[0]["status"], json.loads(b"".join(part.get("body", b"") for part in heard[1:]) or b"{}")


async def test_an_approval_is_told_with_its_note_and_the_call_names_it(project):
    async with Crib(project, tools=[pay]) as crib:
        token, text = crib.tokens.create("Ben", ["approve", "invoke"])
        app = local_app(crib)
        call = Call(name="pay", arguments={"amount": 5}, caller="mcp:local", consent="person")
        approval = (await crib.call(call)).error.details["approval"]
        body = {"decision": "approve", "note": "checked"}
        assert (await ask(app, "POST", f"/approvals/{approval}", body, text))[0] == 200
        assert (await ask(app, "POST", f"/approvals/{approval}", body, text))[0] == 409
        assert (await crib.call(call)).ok
        await app_lifespan.end(app)
        (event,) = crib.audit.events(what=approval)
        assert (event["what"], event["actor"], event["name"], event["why"]) == (
            "call.approved",
            token.id,
            "Ben",
            "checked",
        )
        assert (event["facts"]["tool"], event["facts"]["caller"]) == ("host/pay@1.0.0", "mcp:local")
        assert [line.get("approval") for line in crib.journal.read()] == [None, approval]
        second = (await crib.call(Call(name="pay", arguments={"amount": 6}, caller="x", consent="person"))).error
        crib.approvals.refuse(second.details["approval"])
    assert told(crib, "what", "actor", what="call.refused") == [("call.refused", f"user:{USER}")]


def test_secrets_are_told_without_their_values(crib, cli, project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"sk-canary-0123")))
    assert cli("secret", "set", "KEY").code == 0
    assert cli("secret", "remove", "KEY").code == 0
    assert cli("secret", "remove", "KEY").code == 1
    assert told(crib) == [("secret.set", "KEY", USER), ("secret.removed", "KEY", USER)]
    assert not any(b"canary" in line for line in crib.audit.lines())


def test_a_secret_hides_neither_who_nor_what_nor_when(crib):
    values = ("secret.set", "0000-by-ann", "2026-11-", "T0", "+00:00")
    with Crib(crib.settings.root, caller="0000-by-ann") as other:
        for value in values:
            other.secrets.set("KEY", value)
        with other.audit.record("order.released", "4711", why="as 0000-by-ann said", facts={"by": "0000-by-ann"}):
            pass
    assert told(crib, what="secret") == [("secret.set", "KEY", "0000-by-ann")] * len(values)
    assert told(crib, "actor", "why", "facts", what="order") == [("0000-by-ann", "as *** said", {"by": "***"})]
    assert all(event["time"].endswith("+00:00") for event in crib.audit.events())


def test_tokens_and_sign_ins_are_told(crib):
    made, text = crib.tokens.create("Ann's laptop", ["read"])
    crib.tokens.revoke(made.id)
    crib.tokens.revoke(made.id)
    sign_in = sign_in_of(crib)
    session, cookie = sign_in.open_by_code(sign_in.make_code())
    sign_in.close(cookie)
    other, text = crib.tokens.create("web page", ["read"])
    sign_in.open_by_token(text)
    assert told(crib) == [
        ("token.created", made.id, "ann"),
        ("token.revoked", made.id, "ann"),
        ("session.opened", session.id, session.id),
        ("token.revoked", session.id, "ann"),
        ("token.created", other.id, "ann"),
        ("session.opened", other.id, other.id),
    ]
    assert {name for (name,) in told(crib, "name", what="session")} == {"web page"}
    assert told(crib, "facts")[0][0]["name"] == "Ann's laptop"
    assert not any(text[22:].encode() in line for line in crib.audit.lines())


async def test_changes_over_http_have_the_caller_of_the_request(project):
    (project / "tools" / "hello.py").write_text('def hello() -> str:\n    """Greet."""\n    return "hello"\n')
    async with Crib(project, caller="ann") as crib:
        token, text = crib.tokens.create("Ben", ["manage", "read"])
        app = local_app(crib)
        place = f"/tools/bundles/{BUNDLE}"
        one = f"{place}/tools/area/version/1.0.0"
        changes = [("PUT", place, {"slug": "shapes", "displayName": "Shapes", "isEnabled": True}), ("PUT", one, TOOL)]
        changes += [("PATCH", one, {"isEnabled": False}), ("DELETE", one, None)]
        changes += [("PATCH", place, {"isEnabled": False}), ("DELETE", place, None)]
        for change in changes:
            status, body = await ask(app, *change, text)
            assert status < 300, body
        await ask(app, "PATCH", place, {"isEnabled": True})
        crib.switch_tool("hello", on=False)
        seen = told(crib, "what", "about", "actor", "name")[1:]
        status, page = await ask(app, "GET", "/audit", None, text, b"pageSize=3&what=tool")
        assert status == 200
        rest = (await ask(app, "GET", "/audit", None, text, f"what=tool&pageToken={page['nextPageToken']}".encode()))[1]
        limited = crib.tokens.create("x", ["read", "approve", "invoke"])[1]
        assert (await ask(app, "GET", "/audit", None, limited))[0] == 403
        for query in (b"pageToken=x", b"pageToken=-1", b"since=soon", b"other=1"):
            assert (await ask(app, "GET", "/audit", None, text, query))[0] == 400
        await app_lifespan.end(app)
    assert seen == [
        ("bundle.saved", "shapes", token.id, "Ben"),
        ("tool.saved", "shapes/area@1.0.0", token.id, "Ben"),
        ("tool.disabled", "shapes/area@1.0.0", token.id, "Ben"),
        ("tool.deleted", "shapes/area@1.0.0", token.id, "Ben"),
        ("bundle.disabled", "shapes", token.id, "Ben"),
        ("bundle.deleted", "shapes", token.id, "Ben"),
        ("tool.disabled", "tools/hello@1.0.0", "ann", ""),
    ]
    assert [event["what"] for event in page["events"]] == ["tool.disabled", "tool.deleted", "tool.disabled"]
    assert ([event["what"] for event in rest["events"]], rest["nextPageToken"]) == (["tool.saved"], None)


def test_settings_are_told_when_their_tables_changed_since_the_last_start(project, caplog):
    (project / "toolcrib.toml").write_text('[grants]\nfetch = ["net.http"]\n')

    def start():
        with Crib(project, caller="ann") as crib:
            return crib

    start()
    assert not (project / ".toolcrib" / "audit").exists()
    with Crib(project, caller="ann") as crib:
        crib.secrets.set("KEY", "value-of-it")
    assert told(crib) == [("settings.changed", "grants", "ann"), ("secret.set", "KEY", "ann")]
    (project / "toolcrib.toml").write_text('# as before\n[grants]\nfetch = ["net.http"]\n')
    start()
    assert len(told(crib)) == 2
    (project / "toolcrib.toml").write_text("[calls]\nmax_steps = 5\n")
    start()
    start()
    assert told(crib, "about", "facts")[2:] == [
        ("calls, grants", {"calls": told(crib, "facts")[2][0]["calls"], "grants": None})
    ]
    (project / "toolcrib.toml").write_text("")
    audit = project / ".toolcrib" / "audit"
    head = audit / "head"
    head.rename(audit / "kept")
    head.mkdir()
    start()
    assert "the settings were not recorded" in caplog.text
    head.rmdir()
    (audit / "kept").rename(head)
    start()
    assert told(crib, "about")[3:] == [("calls",)]


def test_settings_that_the_first_event_finds_changed_are_not_told_as_changed_by_its_actor(crib, project):
    (project / "toolcrib.toml").write_text("[calls]\nmax_steps = 5\n")
    actor = ACTOR.set(("6c1d", "Ben"))
    crib.secrets.set("KEY", "value-of-it")
    ACTOR.reset(actor)
    assert told(crib, "what", "actor", "name") == [("settings.changed", "ann", ""), ("secret.set", "6c1d", "Ben")]


def test_what_was_imported_and_pulled_and_added_is_told(project, tmp_path_factory, cli, monkeypatch):
    author, depot = tmp_path_factory.mktemp("author"), tmp_path_factory.mktemp("depot")
    (author / "tools").mkdir()
    (author / "toolcrib.toml").write_text("")
    (project / "toolcrib.toml").write_text("")
    hello = author / "tools" / "hello.py"
    hello.write_text('def hello() -> str:\n    """Greet."""\n    return "hello"\n')
    with Crib(author) as crib:
        crib.publish("hello", str(depot))
        crib.bundles.put_bundle(BUNDLE, {"slug": "shapes", "displayName": "Shapes", "isEnabled": True})
        archive = crib.bundles.export_bundle(BUNDLE)
    with Crib(project, caller="ann") as crib:
        crib.run_sync(crib.pull("hello", str(depot)))
        crib.bundles.import_bundle(BUNDLE, archive)
        with pytest.raises(ToolError):
            crib.bundles.import_bundle(BUNDLE, archive)
    monkeypatch.chdir(project)
    hello.rename(hello.with_name("greet.py"))
    assert cli("add", str(author / "tools" / "greet.py")).code == 0
    assert told(crib) == [
        ("tool.pulled", "hello@1.0.0", "ann"),
        ("bundle.imported", "shapes", "ann"),
        ("tool.added", "tools/greet.py", USER),
    ]
    assert told(crib, "facts")[0][0]["enabled"] is False
    assert told(crib, "facts")[2][0] == {"files": ["tools/greet.py"]}


def test_the_command_shows_exports_and_verifies(project, cli, monkeypatch):
    (project / "toolcrib.toml").write_text("")
    monkeypatch.chdir(project)
    with Crib(project, caller="ann") as crib:
        for number in range(3):
            with crib.audit.record("tool.saved", f"x\x1b[2J{number}", why="because\nof it"):
                pass
    heading, *rows = cli("audit", "-n", "2", "--what", "tool").out.splitlines()
    assert heading.split() == ["NUMBER", "TIME", "ACTOR", "NAME", "WHAT", "ABOUT", "WHY"]
    assert [row.split()[0] for row in rows] == ["2", "3"]
    assert "x\\x1b[2J2" in rows[1]
    assert rows[1].endswith("because of it")
    assert [event["number"] for event in json.loads(cli("audit", "--json").out)] == [1, 2, 3]
    assert cli("audit", "export").out.encode().splitlines() == list(crib.audit.lines())
    head = crib.audit.verify()
    assert cli("audit", "verify").out == f"no event was changed or removed; the head is {head}\n"
    assert json.loads(cli("audit", "verify", "--json", "--head", head).out) == {"head": head}
    (file,) = (project / ".toolcrib" / "audit").glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"because", b"without"))
    ended = cli("audit", "verify")
    assert (ended.code, ended.out) == (1, "")
    assert "event 2 does not follow event 1: one was changed, or some removed" in ended.err
    assert "on the machine of the server" in cli("audit", "verify", "--url", "http://127.0.0.1:1").err


def test_without_a_project_nothing_is_recorded():
    with Crib() as crib:
        crib.secrets.set("KEY", "value-of-it")
        with pytest.raises(ToolError, match="there is no project to keep anything in"):
            crib.audit.verify()


def test_a_change_that_cannot_be_recorded_is_not_made(crib, project):
    crib.secrets.set("KEY", "value-of-it")
    made, _ = crib.tokens.create("x", ["read"])
    head = project / ".toolcrib" / "audit" / "head"
    head.unlink()
    head.symlink_to("/dev/null")
    for change in (
        lambda: crib.secrets.set("OTHER", "value-of-it"),
        lambda: crib.secrets.remove("KEY"),
        lambda: crib.tokens.create("y", ["read"]),
        lambda: crib.tokens.revoke(made.id),
        lambda: crib.bundles.put_bundle(BUNDLE, {"slug": "shapes", "displayName": "Shapes", "isEnabled": True}),
        lambda: crib.switch_tool("pay", on=False),
    ):
        with pytest.raises(ToolError):
            change()
    assert crib.secrets.names() == ["KEY"]
    assert [token.id for token in crib.tokens.list()] == [made.id]
    assert crib.find("pay").enabled
    assert ACTOR.get() is None
