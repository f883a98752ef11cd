"""Read a response that is a stream: server-sent events, or one value in each line."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from toolcrib.infra.egress import UTF_8, codec_of
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.documents import read_json
from toolcrib.lib.server_sent_events import EventReader
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding
from toolcrib.values import MAX_ITEMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from toolcrib.features.http_tools.extraction import Extract
    from toolcrib.features.http_tools.signer import Credentials
    from toolcrib.infra.egress import Response
    from toolcrib.infra.secrets.chunk_mask import ChunkMask

STREAMED = frozenset({Encoding.EVENTS, Encoding.LINES})
# What many APIs of models send as their last event.
DONE = "[DONE]"


class ItemReader:
    """Cuts the body of a response into items: `feed` it with bytes, and `finish` it after the last.

    An item is the JSON of an event or a line, and its text where it is none, or where the expression reads texts.
    """

    def __init__(self, encoding: Encoding, extract: Extract | None, max_bytes: int, content_type: str) -> None:
        self._cut: Callable[[bytes], list[str]] = _events(max_bytes) if encoding is Encoding.EVENTS else _Lines().feed
        self._reads_json = extract is None or extract.looks_into_json
        self._max_bytes = max_bytes
        self._count = 0
        codec = codec_of(content_type)
        if codec is None:
            message = f"the answer has a character set that is not supported ({content_type[:80]})"
            raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)
        self._decoder = None if codec == UTF_8 else codecs.getincrementaldecoder(codec)("replace")

    def feed(self, data: bytes) -> list[object]:
        """The items that are complete with these bytes; raises ToolError where there are too many."""
        try:
            texts = self._cut(data if self._decoder is None else self._decoder.decode(data).encode())
        except ValueError as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer holds {problem}", partial_side_effects=True) from None
        return [self._item(text) for text in texts if text and text != DONE]

    def finish(self) -> list[object]:
        """The last line, which need not have an end; an event that is cut off is none."""
        self._decoder = None
        return self.feed(b"\n")

    def _item(self, text: str) -> object:
        self._count += 1
        if self._count > MAX_ITEMS:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer has more than {MAX_ITEMS:,} items; ask for fewer")
        return _as_json(text, self._max_bytes) if self._reads_json else text


def take_out(items: Iterable[object], extract: Extract | None) -> list[object]:
    """What an expression finds in each item; an item without it is passed over."""
    found: list[object] = []
    for item in items:
        try:
            found.append(item if extract is None else extract(item))
        except ToolError:
            continue
    return found


class ItemSender:
    """Hands the items of a response to the client of a call.

    They are masked across their borders before the expression takes something out: it could cut a secret into pieces.
    """

    def __init__(
        self,
        send: Callable[[object], Awaitable[None]],
        extract: Extract | None,
        masks: Iterable[Masking | Credentials],
        *,
        is_one_text: bool,
    ) -> None:
        self._is_one_text = is_one_text and extract is None
        self._extract = extract
        self._send = send
        self._made = masks
        self._masks: list[ChunkMask] | None = None

    async def send(self, items: list[object]) -> bool:
        """Send these items; whether there are any."""
        for item in items:
            await self._pass(item, 0)
        return bool(items)

    async def finish(self) -> None:
        """Send what was held back."""
        for number, mask in enumerate(self._opened()):
            for item in mask.flush():
                await self._pass(item, number + 1)

    async def _pass(self, item: object, number: int) -> None:
        """Send an item through the masks from this one on."""
        masks = self._opened()
        if number == len(masks):
            for found in take_out([item], self._extract):
                await self._send(found)
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


def read_items(response: Response, encoding: Encoding, extract: Extract | None, max_bytes: int) -> list[object]:
    """Every item of a response that is complete."""
    reader = ItemReader(encoding, extract, max_bytes, response.headers.get("content-type", ""))
    return [*reader.feed(response.body), *reader.finish()]


def _events(max_bytes: int) -> Callable[[bytes], list[str]]:
    reader = EventReader(max_bytes)
    return lambda data: [event.data for event in reader.feed(data)]


class _Lines:
    def __init__(self) -> None:
        # The line that has no end yet. Only new bytes are looked at: a long line may come in a million pieces.
        self._begun = bytearray()

    def feed(self, data: bytes) -> list[str]:
        first, *lines = data.split(b"\n")
        self._begun += first
        if not lines:
            return []
        ended, self._begun = bytes(self._begun), bytearray(lines.pop())
        return [line.decode("utf-8", "replace").strip() for line in (ended, *lines)]


def _as_json(text: str, max_bytes: int) -> object:
    try:
        return read_json(text.encode("utf-8", "replace"), place="the item", max_bytes=4 * max_bytes)
    except ToolError:
        return text
