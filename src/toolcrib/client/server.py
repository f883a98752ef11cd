"""Requests to one server, from sync and async code, with validated responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.client.background_loop import BackgroundLoop
from toolcrib.client.connection import SECONDS, Connection
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.client.connection import Answer, Query
    from toolcrib.client.shapes import Shape
    from toolcrib.toolkit.tool_facts import Facts

PAGE = 256
MAX_LISTED = 200_000
MAX_LISTED_BYTES = 256_000_000
NO_HEADERS: Mapping[str, str] = {}


class Server:
    """Sends requests to the server at a URL. Methods that are not async block the calling thread."""

    def __init__(self, url: str, token: str | None) -> None:
        self.connection = Connection(url, token)
        self.loop = BackgroundLoop()
        self.url = self.connection.url

    def ask(
        self,
        method: str,
        path: str,
        shape: Shape,
        *,
        query: Query = (),
        headers: Mapping[str, str] = NO_HEADERS,
        body: Mapping[str, object] | bytes | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """Send a request; returns an answer of that shape, or raises ToolError if the server refuses."""
        return self._expect(
            shape, self.try_to_ask(method, path, query=query, headers=headers, body=body, seconds=seconds)
        )

    async def ask_async(
        self,
        method: str,
        path: str,
        shape: Shape,
        *,
        query: Query = (),
        body: Mapping[str, object] | bytes | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """Send a request like `ask`, from async code."""
        asking = self.connection.ask(method, path, query=query, body=body, seconds=seconds)
        return self._expect(shape, await self.loop.run(asking))

    def try_to_ask(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] = NO_HEADERS,
        body: Mapping[str, object] | bytes | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """Send a request; returns the answer, which may be a refusal."""
        asking = self.connection.ask(method, path, query=query, headers=headers, body=body, seconds=seconds)
        return self.loop.wait_for(asking)

    def list(
        self, path: str, query: Query, key: str, shape: Shape, headers: Mapping[str, str] = NO_HEADERS
    ) -> Iterator[Facts]:
        """The items under the key, from all pages."""
        token, count, size = "", 0, 0
        while True:
            more = [("pageToken", token)] if token else []
            asked = [*query, ("pageSize", str(PAGE)), *more]
            answer = self.ask("GET", path, shape, query=asked, headers=headers)
            items: list[Facts] = answer.document[key]
            yield from items
            token, count, size = str(answer.document["nextPageToken"] or ""), count + len(items), size + answer.size
            if not token:
                return
            if not items or count > MAX_LISTED or size > MAX_LISTED_BYTES:
                raise ToolError(Kind.LIMIT_EXCEEDED, f"{self.url}: the list does not end; look for less at a time")

    def download(self, path: str) -> bytes:
        """Download an archive; raises ToolError if the server refuses."""
        found = self.loop.wait_for(self.connection.download(path))
        if isinstance(found, bytes):
            return found
        raise self.connection.problem_of(found)

    async def close(self) -> None:
        """Close the connections and stop the thread."""
        await self.loop.run(self.connection.close())
        self.loop.close()

    def close_sync(self) -> None:
        """Close from code that is not async."""
        self.loop.wait_for(self.connection.close())
        self.loop.close()

    def _expect(self, shape: Shape, answer: Answer) -> Answer:
        if answer.is_refusal:
            raise self.connection.problem_of(answer)
        shape.check(answer.document, self.url)
        return answer
