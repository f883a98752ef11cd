"""A call that may send data out needs confirmation in a session that has private data."""

import pytest

from toolcrib import Call, Context, Crib, Kind, SettingsError, tool

GRANTS = {"grants": {"*": ["*"]}}
PRIVATE = {"safety_rules": {"private": ["customers", "./data/clients", "/srv/private"]}, **GRANTS}


@tool(requires=["fs.read"])
def read_notes(path: str = "notes.txt") -> str:
    """Read a file."""
    return "notes"


@tool(requires=["shell.execute"])
def run(words: str) -> str:
    """Run a command."""
    return "done"


@tool(requires=["net.http"])
def send(text: str) -> str:
    """Send a text out."""
    return "sent"


@tool
def customers() -> str:
    """Look customers up."""
    return "customers"


@tool(requires=["fs.read", "net.http"])
def upload(path: str) -> str:
    """Read and send at once."""
    return "sent"


@tool(requires=["net.http"])
async def relay(context: Context) -> str:
    """Look customers up, and have another tool send them."""
    await context.call("customers")
    return (await context.call("send", text="customers")).error.message


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@pytest.fixture
def crib(crib_of):
    return crib_of(read_notes, run, send, customers, upload, relay, add, **PRIVATE)


async def call(crib, name, session, **arguments):
    return await crib.call(Call(name=name, arguments=arguments, session=session))


def asked(result):
    return not result.ok and result.error.kind is Kind.CONFIRMATION_REQUIRED


async def test_sending_needs_confirmation_after_a_private_tool_was_called_in_the_session(crib):
    session = crib.session()
    assert (await call(crib, "send", session, text="hello")).ok
    assert (await call(crib, "customers", session)).ok
    refused = await call(crib, "send", session, text="hello")
    assert asked(refused)
    assert "send may send data out, and host/customers@1.0.0 has private data of this session" in refused.error.message
    assert (await call(crib, "add", session, a=1)).ok
    assert (await call(crib, "customers", session)).ok
    token = refused.error.details["confirmation"]
    sending = Call(name="send", arguments={"text": "hello"}, session=session, confirmation=token)
    assert (await crib.call(sending)).ok


async def test_another_session_and_a_call_without_one_stand_alone(crib):
    await call(crib, "customers", crib.session())
    assert (await call(crib, "send", crib.session(), text="hello")).ok
    assert (await crib.call("customers")).ok
    assert (await crib.call("send", text="hello")).ok


@pytest.mark.parametrize(
    ("reader", "arguments", "is_private"),
    [
        ("read_notes", {}, False),
        ("read_notes", {"path": "data/clients.csv"}, False),
        ("read_notes", {"path": "data/clients/a.csv"}, True),
        ("read_notes", {"path": "x/../data//clients/a b.csv"}, True),
        ("read_notes", {"path": "/srv/private"}, True),
        ("run", {"words": "cat 'data/clients/a.csv'|wc"}, True),
        ("run", {"words": "ls data"}, False),
        ("add", {"a": 1}, False),
    ],
)
async def test_a_session_that_named_a_private_path_has_private_data(crib, reader, arguments, is_private):
    session = crib.session()
    assert (await call(crib, reader, session, **arguments)).ok
    assert asked(await call(crib, "send", session, text="hello")) is is_private


async def test_a_call_that_reads_a_private_path_and_sends_is_asked_by_itself(crib):
    assert asked(await crib.call("upload", path="data/clients/a.csv"))
    assert (await crib.call("upload", path="data/offers.csv")).ok


async def test_explain_says_the_same_before_the_call(crib):
    session = crib.session()
    sending = Call(name="send", arguments={"text": "hello"}, session=session)
    assert crib.explain(sending).allowed
    await call(crib, "customers", session)
    found = {finding.gate: finding.verdict for finding in crib.explain(sending).findings}
    assert found["confirmation"].rule == "data_flow"
    assert "safety_rules.data_flow" in found["confirmation"].where


async def test_a_call_that_was_refused_has_read_nothing_and_one_that_failed_may_have(crib_of):
    @tool
    def stumble(a: int) -> str:
        """Read, and fail with what was read."""
        raise RuntimeError("notes")

    crib = crib_of(stumble, send, safety_rules={"private": ["stumble"]}, **GRANTS)
    session = crib.session()
    assert not (await call(crib, "stumble", session, a="one")).ok
    assert (await call(crib, "send", session, text="hello")).ok
    assert not (await call(crib, "stumble", session, a=1)).ok
    assert asked(await call(crib, "send", session, text="notes"))


async def test_a_tool_has_no_other_tool_send_private_data(crib):
    told = await call(crib, "relay", crib.session())
    assert "send may send data out, and host/customers@1.0.0 has private data" in told.value


async def test_the_operator_can_switch_the_rule_off(crib_of):
    crib = crib_of(customers, send, safety_rules={"data_flow": False, "private": ["customers"]}, **GRANTS)
    session = crib.session()
    await call(crib, "customers", session)
    assert (await call(crib, "send", session, text="hello")).ok


def document(slug, **request):
    called = {"urlTemplate": "https://shop.example/", **request}
    return {
        "schemaVersion": "2025-07-01",
        "slug": slug,
        "displayName": slug,
        "description": "Ask a shop.",
        "isEnabled": True,
        "argSchema": {"type": "object"},
        "outputSchema": {},
        "type": "http",
        "impl": called,
    }


async def test_what_a_secret_opened_may_go_where_that_secret_is_used(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "keyed.py").write_text('"""Use SHOP."""\n\n\ndef keyed() -> int:\n    return 1\n')
    settings = {"access": {"variables": ["keyed:SHOP", "keyed:HOME"]}, **GRANTS}
    bundle = "019b0000-0000-7000-8000-000000000001"
    async with Crib(tmp_path, tools=[send], settings=settings) as crib:
        crib.bundles.put_bundle(bundle, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
        for slug, header in {"orders": "${secret:SHOP}", "bare": "${SHOP}", "other": "${secret:OTHER}"}.items():
            crib.bundles.put_tool(bundle, slug, "v1", document(slug, headers={"x-key": header}))
        session = crib.session()
        assert (await call(crib, "keyed", session)).ok
        assert not session.notes, "HOME is no secret"
        crib.secrets.set("SHOP", "s3cret-of-shop")
        assert (await call(crib, "keyed", session)).ok
        calls = {name: Call(name=name, session=session) for name in ("orders", "bare", "other")}
        verdicts = {
            name: next(each.verdict for each in crib.explain(call).findings if each.gate == "confirmation")
            for name, call in calls.items()
        }
        assert {name: verdict.rule for name, verdict in verdicts.items()} == {
            "orders": "",
            "bare": "",
            "other": "data_flow",
        }
        assert asked(await call(crib, "send", session, text="hello"))


@pytest.mark.parametrize("word", ["./ok", "no tool", "a*b"])
def test_a_word_of_the_setting_names_a_tool_a_bundle_or_a_path(crib_of, word):
    if word == "./ok":
        crib_of(send, safety_rules={"private": [word, "/", "send", "host/*"]})
        return
    with pytest.raises(SettingsError, match="a path begins with"):
        crib_of(send, safety_rules={"private": [word]})
