"""A session that has read private data may not send any out, where the operator says so."""

import pytest

from toolcrib import Call, Context, Crib, Kind, tool

GRANTS = {"grants": {"*": ["*"]}}


@tool(requires=["fs.read"])
def read_notes() -> str:
    """Read private notes."""
    return "notes"


@tool(requires=["net.http"])
def send(text: str) -> str:
    """Send a text out."""
    return "sent"


@tool(requires=["data.customers"])
def customers() -> str:
    """Look customers up."""
    return "customers"


@tool(requires=["net.postgresql"])
def query() -> str:
    """Ask a database."""
    return "rows"


@tool(requires=["fs.read", "net.http"])
async def upload(context: Context) -> str:
    """Read and send at once."""
    return "sent"


@tool(requires=["net.postgresql", "net.http"])
def report() -> str:
    """Ask a database and send the rows."""
    return "sent"


@tool(requires=["fs.read"])
async def relay(context: Context) -> str:
    """Read, and have another tool send it."""
    return (await context.call("send", text="notes")).error.message


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@pytest.fixture
def crib(crib_of):
    return crib_of(
        read_notes, send, customers, query, upload, report, relay, add, safety_rules={"data_flow": True}, **GRANTS
    )


async def call(crib, name, session, **arguments):
    return await crib.call(Call(name=name, arguments=arguments, session=session))


@pytest.mark.parametrize("reader", ["read_notes", "customers", "query"])
async def test_what_was_read_is_not_sent_out_in_the_same_session(crib, reader):
    session = crib.session()
    assert (await call(crib, "send", session, text="hello")).ok
    assert (await call(crib, reader, session)).ok
    refused = await call(crib, "send", session, text="hello")
    assert refused.error.kind is Kind.BLOCKED
    assert f"{crib.find(reader).tool.address} may have read private data in this session" in refused.error.message
    assert refused.error.details["readBy"] == [crib.find(reader).tool.address]
    assert (await call(crib, "add", session, a=1)).ok


async def test_another_session_and_a_call_without_one_are_free(crib):
    await call(crib, "read_notes", crib.session())
    assert (await call(crib, "send", crib.session(), text="hello")).ok
    assert (await crib.call("send", text="hello")).ok


async def test_explain_says_the_same_before_the_call(crib):
    session = crib.session()
    sending = Call(name="send", arguments={"text": "hello"}, session=session)
    assert crib.explain(sending).allowed
    await call(crib, "read_notes", session)
    found = {finding.gate: finding.verdict for finding in crib.explain(sending).findings}
    assert found["rules"].rule == "data_flow"
    assert "safety_rules.data_flow" in found["rules"].where


async def test_a_call_that_was_refused_has_read_nothing(crib):
    session = crib.session()
    assert not (await call(crib, "read_notes", session, unknown=1)).ok
    assert (await call(crib, "send", session, text="hello")).ok


async def test_without_the_setting_nothing_is_forbidden(crib_of):
    crib = crib_of(read_notes, send, **GRANTS)
    session = crib.session()
    await call(crib, "read_notes", session)
    assert (await call(crib, "send", session, text="hello")).ok


@pytest.mark.parametrize("name", ["upload", "report"])
async def test_one_tool_that_may_read_and_send_is_refused_in_every_session(crib, name):
    session = crib.session()
    refused = await call(crib, name, session)
    assert refused.error.kind is Kind.BLOCKED
    assert f"{name} may read private data and send data out in the same call" in refused.error.message
    assert not crib.explain(Call(name=name, session=session)).allowed
    assert (await call(crib, "send", session, text="hello")).ok


async def test_a_tool_that_reads_has_no_other_tool_send_it(crib):
    told = await call(crib, "relay", crib.session())
    assert "send may send data out, and host/relay@1.0.0 may have read private data" in told.value


async def test_what_came_from_a_database_may_go_to_one(crib):
    session = crib.session()
    assert (await call(crib, "query", session)).ok
    assert (await call(crib, "query", session)).ok
    await call(crib, "read_notes", session)
    assert (await call(crib, "query", session)).error.details["readBy"] == [crib.find("read_notes").tool.address]


async def test_what_came_from_a_database_does_not_go_to_code_that_could_send_it_anywhere(tmp_path):
    """With any `net.…` a file of code has the whole network, and `http_client` sends requests."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "post.py").write_text(
        '"""Post."""\n__requires__ = ["net.postgresql"]\n\n\ndef post(text: str) -> str:\n    return text\n'
    )
    async with Crib(tmp_path, tools=[query], settings={"safety_rules": {"data_flow": True}, **GRANTS}) as crib:
        session = crib.session()
        posting = Call(name="post", arguments={"text": "rows"}, session=session)
        assert crib.explain(posting).allowed
        assert (await call(crib, "query", session)).ok
        assert (await call(crib, "query", session)).ok
        assert not crib.explain(posting).allowed
        assert (await crib.call(posting)).error.details["readBy"] == ["host/query@1.0.0"]


async def test_a_call_that_failed_may_have_read(crib_of):
    @tool(requires=["fs.read"])
    def stumble() -> str:
        """Read, and fail with what was read."""
        raise RuntimeError("notes")

    crib = crib_of(stumble, send, safety_rules={"data_flow": True}, **GRANTS)
    session = crib.session()
    assert not (await call(crib, "stumble", session)).ok
    assert not (await call(crib, "send", session, text="notes")).ok
