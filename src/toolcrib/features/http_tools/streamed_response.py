"""Read a response that is a stream: server-sent events, or one value in each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.documents import read_json
from toolcrib.lib.json_values import MAX_ITEMS
from toolcrib.lib.server_sent_events import EventReader
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from toolcrib.features.http_tools.extraction import Extract
    from toolcrib.features.http_tools.signer import Credentials
    from toolcrib.infra.secrets.chunk_mask import ChunkMask

STREAMED = frozenset({Encoding.EVENTS, Encoding.LINES})
# What many APIs of models send as their last event.
DONE = "[DONE]"


class ItemReader:
    """Cuts the body of a response into items: `feed` it with bytes, and `finish` it behind the last.

    An item is the JSON of an event or a line, and its text where it is none. An expression takes out of each item what counts;
    an item without it is passed over.
    """

    def __init__(self, encoding: Encoding, extract: Extract | None, max_bytes: int) -> None:
        self._cut: Callable[[bytes], list[str]] = _events(max_bytes) if encoding is Encoding.EVENTS else _Lines().feed
        self._extract = extract
        self._max_bytes = max_bytes
        self._count = 0

    def feed(self, data: bytes) -> list[object]:
        """The items that are complete with these bytes; raises ToolError where there are too many."""
        try:
            texts = self._cut(data)
        except ValueError as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer holds {problem}", partial_side_effects=True) from None
        return [item for text in texts if text and text != DONE for item in self._item(text)]

    def finish(self) -> list[object]:
        """The last line, which need not have an end; an event that is cut off is none."""
        return self.feed(b"\n")

    def _item(self, text: str) -> list[object]:
        self._count += 1
        if self._count > MAX_ITEMS:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer has more than {MAX_ITEMS:,} items; ask for fewer")
        item: object = text
        if self._extract is None or self._extract.looks_into_json:
            item = _as_json(text, self._max_bytes)
        if self._extract is None:
            return [item]
        try:
            return [self._extract(item)]
        except ToolError:
            return []


class ItemSender:
    """Hands the items of a response to the client of a call, masked across their borders."""

    def __init__(
        self,
        send: Callable[[object], Awaitable[None]],
        reader: ItemReader,
        masks: Iterable[Masking | Credentials],
        *,
        is_one_text: bool,
    ) -> None:
        self._is_one_text = is_one_text
        self._send = send
        self._reader = reader
        self._made = masks
        self._masks: list[ChunkMask] | None = None

    async def feed(self, data: bytes) -> bool:
        """Send what is complete with these bytes; whether there was anything."""
        items = self._reader.feed(data)
        for item in items:
            await self._pass(item, 0)
        return bool(items)

    async def finish(self) -> None:
        """Send the rest."""
        for item in self._reader.finish():
            await self._pass(item, 0)
        for number, mask in enumerate(self._opened()):
            for item in mask.flush():
                await self._pass(item, number + 1)

    async def _pass(self, item: object, number: int) -> None:
        """Send an item through the masks from this one on."""
        masks = self._opened()
        if number == len(masks):
            await self._send(item)
            return
        for shown in masks[number].feed(item):
            await self._pass(shown, number + 1)

    def _opened(self) -> list[ChunkMask]:
        """The masks, made when the answer is there: only then a request has been signed."""
        if self._masks is None:
            self._masks = [_masking_of(one).chunks(is_one_text=self._is_one_text) for one in self._made]
        return self._masks


def _masking_of(source: Masking | Credentials) -> Masking:
    if isinstance(source, Masking):
        return source
    masking = Masking()
    masking.add(*source.texts)
    return masking


def read_items(body: bytes, encoding: Encoding, extract: Extract | None, max_bytes: int) -> list[object]:
    """Every item of a body that is complete."""
    reader = ItemReader(encoding, extract, max_bytes)
    return [*reader.feed(body), *reader.finish()]


def _events(max_bytes: int) -> Callable[[bytes], list[str]]:
    reader = EventReader(max_bytes)
    return lambda data: [event.data for event in reader.feed(data)]


class _Lines:
    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace").strip() for line in lines]


def _as_json(text: str, max_bytes: int) -> object:
    try:
        return read_json(text.encode("utf-8", "replace"), place="the item", max_bytes=4 * max_bytes)
    except ToolError:
        return text
