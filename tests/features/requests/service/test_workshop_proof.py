"""Every setting about requests, and about how what was made for them is proved, reaches its part through a Crib."""

from __future__ import annotations

import asyncio
import time

import pytest

from tool_requests import queue_of
from toolcrib import Kind, SettingsError, ToolError

SECONDS = 20
HONEST = "def lucky_number():\n    return {'number': 7}\n"


def wanted(**more):
    """A tool that is quickly proved."""
    return {
        "name": "lucky_number",
        "description": "Tell the lucky number",
        "priority": "medium",
        "requested_by": "fullsend",
        "outputs": [{"name": "number", "type": "integer"}],
        **more,
    }


@pytest.fixture
def crib_with(crib_of, project):
    """A crib over the project with these settings."""
    return lambda **settings: crib_of(project=project, **settings)


@pytest.fixture
def made(tmp_path_factory):
    """Where a person made the tool."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def other(project):
    """The queue of the project, as another process has it."""
    (project / ".toolcrib").mkdir()
    queue = queue_of(project)
    yield queue
    queue.close()


def test_a_project_without_a_place_for_tools_has_no_builder(project, crib_with):
    (project / "toolcrib.toml").write_text("catalog.folders = []\n")
    with pytest.raises(SettingsError, match="built tools have no place; name a folder in "):
        crib_with().builder()


class TestTheGate:
    @pytest.fixture
    def delivered(self, made):
        """Deliver this code for a request; what became of it."""

        async def deliver(crib, code=HONEST, say=None, **more):
            (made / "lucky_number.py").write_text(code)
            filed = crib.requests.new(wanted(**more)).filed
            async with asyncio.timeout(SECONDS):
                return await crib.requests.deliver(filed.id, made / "lucky_number.py", say)

        return deliver

    SLOW = "import time\n\ndef lucky_number():\n    time.sleep(3)\n    return {'number': 7}\n"

    async def test_a_call_may_take_as_long_as_the_setting_says(self, crib_with, delivered, project):
        with pytest.raises(ToolError, match="TIMEOUT|does not end in time") as refusal:
            await delivered(crib_with(builder={"call_seconds": 1}), self.SLOW)
        assert refusal.value.kind is Kind.VALIDATION
        assert not (project / "tools" / "lucky_number").exists()

    async def test_the_whole_proof_may_take_as_long_as_the_setting_says(self, crib_with, delivered, project):
        crib = crib_with(builder={"seconds": 1, "call_seconds": 4})
        with pytest.raises(ToolError, match="builder.seconds"):
            await delivered(crib, f"import time\ntime.sleep(1_000)\n{HONEST}")
        assert not (project / "tools" / "lucky_number").exists()

    async def test_a_request_gets_the_capabilities_that_the_setting_lists_and_no_others(self, crib_with, delivered):
        crib = crib_with(builder={"capabilities": ["fs.read"]})
        with pytest.raises(
            ToolError, match="lucky_number asks for fs.write, which no request may have here"
        ) as refusal:
            await delivered(crib, name="lucky_number", capabilities=["fs.read", "fs.write"])
        assert refusal.value.kind is Kind.CAPABILITY_MISSING
        filed = await delivered(crib, capabilities=["fs.read"])
        assert filed.status == "ready"
        assert crib.find("lucky_number").tool.requires == {"fs.read"}

    async def test_what_nothing_proves_goes_live_only_if_the_setting_says_so(self, crib_with, delivered):
        cautious = crib_with(builder={"capabilities": ["net.http"]})
        with pytest.raises(ToolError, match="not provable: the tool needs net.http"):
            await delivered(cautious, capabilities=["net.http"])
        bold = crib_with(builder={"capabilities": ["net.http"], "unproved": True})
        assert (await delivered(bold, capabilities=["net.http"])).status == "ready"


class TestTheLease:
    @pytest.fixture
    def overtake(self, crib_with, other):
        """Hold up the builder that says this, as if it had lost its lease, until another one could claim its request."""
        crib = crib_with(builder={"lease_seconds": 1})
        crib.requests.new(wanted())
        claims = []

        def wait(_):
            until = time.monotonic() + SECONDS / 2
            while not claims and time.monotonic() < until:
                other.wait(0.05)
                claims.extend(filter(None, [other.claim("another", 60.0)]))

        return crib, wait, claims

    async def test_a_builder_that_falls_silent_holds_others_up_as_long_as_the_setting_says(self, overtake):
        crib, wait, claims = overtake
        filed = await crib.builder(say=wait).build_one()
        assert [claim.id for claim in claims] == [filed.id]
        assert (filed.owner, filed.held) == ("another", False)

    async def test_so_does_a_delivery(self, overtake, made, project):
        crib, wait, claims = overtake
        (made / "lucky_number.py").write_text(HONEST)
        [filed] = crib.requests.list()
        with pytest.raises(ToolError, match="another Builder has it") as refusal:
            await crib.requests.deliver(filed.id, made, wait)
        assert refusal.value.kind is Kind.CONFLICT
        assert len(claims) == 1
        assert not (project / "tools" / "lucky_number").exists()


class TestRequests:
    def test_warnings_refuse_a_request_where_the_setting_is_strict(self, crib_with):
        crib = crib_with(requests={"strict": True})
        with pytest.raises(ToolError, match="requested_by") as refusal:
            crib.requests.new(wanted(requested_by="somebody"))
        assert refusal.value.kind is Kind.VALIDATION
        assert crib.requests.list() == []
        assert crib_with().requests.new(wanted(requested_by="somebody")).warnings

    @pytest.mark.spec("S0-01")
    async def test_what_is_missing_is_asked_for_where_the_setting_says_so(self, crib_with, other):
        crib = crib_with(requests={"missing": True})
        await crib.call("word_counter", text="canary")
        assert crib.find_tools("scrape github stargazers") == []
        async with asyncio.timeout(SECONDS):
            while len(other.requests()) < 2:
                await asyncio.to_thread(other.wait, 0.5)
        filed = {each.name: each.id for each in crib.requests.list()}
        assert filed.keys() == {"word_counter", "scrape_github_stargazers"}
        assert (await crib.call("word_counter")).error.details["requestId"] == filed["word_counter"]

    async def test_nothing_is_asked_for_by_itself_otherwise(self, crib_with):
        crib = crib_with()
        result = await crib.call("word_counter", text="canary")
        assert crib.find_tools("scrape github stargazers") == []
        assert crib.request_from_search("scrape github stargazers") == ""
        assert "requestId" not in result.error.details
        assert crib.requests.list() == []
