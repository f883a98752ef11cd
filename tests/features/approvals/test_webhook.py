"""The webhook: people elsewhere are told of a call that waits, without its values, and no call waits for that."""

import asyncio
import json
import logging

import pytest

from toolcrib import Call, Crib, SettingsError, tool
from toolcrib.features.approvals.webhook import PAUSES, Webhook
from toolcrib.model.approval import Approval


@tool(confirm=True)
def pay(amount: int, text: str) -> str:
    """Pay."""
    return f"paid {amount}"


class Receiver:
    """A web server on the loopback address that notes what it is sent, and answers with the statuses that it is given."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.documents: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self.answers = asyncio.Event()
        self.answers.set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *failure):
        self.answers.set()
        self.server.close()

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        self.documents.put_nowait(json.loads(await reader.readexactly(size)))
        await self.answers.wait()
        status = self.statuses.pop(0)
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nLocation: /other\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()

    async def told(self):
        async with asyncio.timeout(20):
            return await self.documents.get()


def approval(tool="host/pay@1.0.0"):
    facts = {"version": "1.0.0", "content_hash": "", "arguments": {}, "digest": "", "caller": "mcp:x", "reason": ""}
    return Approval(id="a", tool=tool, **facts, rule="", created_at=0, expires_at=3_600)


async def test_a_call_that_begins_to_wait_is_told_without_its_values_and_does_not_wait_for_that(tmp_path):
    async with Receiver(200) as receiver:
        receiver.answers.clear()
        page = "https://crib.example.com"
        settings = f'[notify]\nwebhook = "http://127.0.0.1:{receiver.port}/hooks/key"\npage = "{page}"\n'
        (tmp_path / "toolcrib.toml").write_text(settings)
        async with Crib(tmp_path, tools=[pay]) as crib:
            wanted = Call(name="pay", arguments={"amount": 5, "text": "secret words"}, caller="mcp:x", consent="person")
            refused = (await crib.call(wanted)).error
            # The same call again is the same approval, of which nobody is told again.
            await crib.call(wanted)
            document = await receiver.told()
            waiting = crib.approvals.show(refused.details["approval"])
        assert document == {
            "text": f"host/pay@1.0.0 waits for approval: {page}/ui/#/approvals",
            "id": waiting.id,
            "tool": "host/pay@1.0.0",
            "caller": "mcp:x",
            "asker": "",
            "since": waiting.to_json()["createdAt"],
            "link": f"{page}/ui/#/approvals",
        }
        assert receiver.documents.empty()


async def test_a_webhook_that_fails_is_tried_again_a_few_times_and_then_logged_without_its_path(caplog):
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    async with Receiver(500, 302, 200, *[404] * 3) as receiver:
        webhook = Webhook(f"http://127.0.0.1:{receiver.port}/hooks/key", page="http://x", sleep=sleep)
        with caplog.at_level(logging.WARNING, "toolcrib.approvals"):
            for tries in (3, 3):
                webhook.tell(approval(), "")
                [task] = webhook._tasks
                await asyncio.wait_for(task, 20)
                assert receiver.documents.qsize() == tries
                receiver.documents = asyncio.Queue()
        await webhook.close()
    assert pauses == [*PAUSES, *PAUSES]
    [record] = caplog.records
    assert record.message == f"approval a was not sent to http://127.0.0.1:{receiver.port}: it answered with status 404"


async def test_a_name_that_leads_to_a_private_address_is_reached_only_if_the_operator_lists_the_address(caplog):
    async with Receiver(200) as receiver:
        for private in ((), (f"127.0.0.1:{receiver.port}", f"[::1]:{receiver.port}")):
            webhook = Webhook(
                f"http://localhost:{receiver.port}/", page="http://x", private=private, sleep=lambda _: asyncio.sleep(0)
            )
            webhook.tell(approval("host/pay\u202e@1.0.0"), "")
            [task] = webhook._tasks
            await asyncio.wait_for(task, 20)
            await webhook.close()
            assert receiver.documents.qsize() == (1 if private else 0)
        assert (await receiver.told())["tool"] == "host/pay\\u202e@1.0.0"
    assert "private" in caplog.text


async def test_closing_gives_up_what_was_not_sent():
    async with Receiver() as receiver:
        receiver.answers.clear()
        webhook = Webhook(f"http://127.0.0.1:{receiver.port}/", page="http://x")
        webhook.tell(approval(), "")
        await receiver.told()
        await asyncio.wait_for(webhook.close(), 20)
        assert not webhook._tasks


@pytest.mark.parametrize("url", ["ftp://example.com/", "not a url", "http://user:word@example.com/"])
def test_a_webhook_that_is_no_address_is_refused_at_the_start(tmp_path, url):
    (tmp_path / "toolcrib.toml").write_text(f'[notify]\nwebhook = "{url}"\n')
    with pytest.raises(SettingsError, match=r"notify\.webhook"), Crib(tmp_path) as crib:
        crib.check_settings()
