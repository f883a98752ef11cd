"""Tell people elsewhere that a call waits for approval: a small JSON document to the address that the operator set."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.egress import Request
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.settings import Table, read_text, setting
from toolcrib.lib.hidden_text import show_hidden_in
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from toolcrib.model.approval import Approval

logger = logging.getLogger("toolcrib.approvals")

SECONDS = 10.0
MAX_ANSWER_BYTES = 64_000
# How long to wait before each further attempt.
PAUSES = (2.0, 10.0)


def _read_url(name: str, value: object) -> str:
    try:
        return str(parse_url(read_text(name, value)))
    except ToolError as problem:
        raise ValueError(f"{name}: {problem.message}") from problem


class NotifySettings(Table, name="notify"):
    """Who is told that a call waits for approval."""

    webhook: str = setting(
        default="",
        read=_read_url,
        summary="an address that gets a JSON document by POST for each call that begins to wait for approval; the values of its arguments are not in it",
    )
    page: str = setting(
        default="",
        read=_read_url,
        opens=False,
        summary="the address of the server as people reach it, for the link in that document; `server.host` and `server.port` if absent",
    )


class Webhook:
    """Sends each approval in the background, so that no call waits for it; what cannot be sent is logged.

    An address with a private IP literal is reached because the operator wrote it; a name that leads to a private address is not,
    unless `private` lists that address.
    """

    def __init__(
        self,
        url: str,
        *,
        page: str,
        private: Iterable[str] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._url = parse_url(url)
        host, port = self._url.host, self._url.port
        endpoint = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._egress = Egress(private=(*private, *(() if self._url.address is None else (endpoint,))))
        self._hosts = parse_hosts((endpoint,), "notify.webhook")
        self._link = f"{page.rstrip('/')}/ui/#/approvals"
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, approval: Approval, asker: str) -> None:
        """Begin to send an approval."""
        facts = approval.to_json()
        document = {
            "text": f"{approval.tool} waits for approval: {self._link}",
            **{name: facts[name] for name in ("id", "tool", "caller")},
            "asker": asker,
            "since": facts["createdAt"],
            "link": self._link,
        }
        task = asyncio.get_running_loop().create_task(self._send(approval.id, orjson.dumps(show_hidden_in(document))))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what was not sent yet."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._egress.close()

    async def _send(self, approval_id: str, body: bytes) -> None:
        request = Request(url=self._url, method="POST", headers={"Content-Type": "application/json"}, body=body)
        problem = await self._try(request)
        for pause in PAUSES:
            if not problem:
                return
            await self._sleep(pause)
            problem = await self._try(request)
        if problem:
            # The path may hold a key.
            logger.warning("approval %s was not sent to %s: %s", approval_id, self._url.origin, problem)

    async def _try(self, request: Request) -> str:
        """Send the request once; what went wrong, empty if nothing did."""
        try:
            response = await self._egress.fetch(
                request, hosts=self._hosts, max_bytes=MAX_ANSWER_BYTES, timeout=SECONDS, follows=False
            )
        except ToolError as problem:
            return problem.message
        return "" if response.status // 100 == 2 else f"it answered with status {response.status}"  # noqa: PLR2004 - any success
