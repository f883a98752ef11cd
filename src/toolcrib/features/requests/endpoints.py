"""Requests for missing tools over HTTP: file, list, follow, deliver, cancel; and what waits for them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import quote

from toolcrib.features.requests.document.extensions import read_allowance
from toolcrib.features.requests.document.writer import readable_id
from toolcrib.features.requests.event_stream import Listening
from toolcrib.features.requests.tracker import MAX_LISTED, MAX_TEXT_BYTES
from toolcrib.infra.files.durable import show
from toolcrib.infra.files.tool_folder import MAX_DEPTH, MAX_FILES
from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status
from toolcrib.toolkit.http.concurrency import Admission
from toolcrib.toolkit.http.messages import answer_json, until_gone
from toolcrib.toolkit.http.problems import Refusal
from toolcrib.toolkit.http.request_data import (
    Query,
    read_any_keys,
    read_keys,
    read_object,
    read_yaml,
    refuse_query,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from toolcrib.crib import Crib
    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.model.toolrequest import Event, Filed, Submitted
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.messages import Answer, Request

    Wish = Mapping[str, object] | str | bytes
    # Within the class below, `list` is what it does.
    Events = list[Event]


# MERGED toolcrib.faces.http.asking

# Asking the queue of requests: it may be a server that does not answer, and nobody else is to wait for it.

P = ParamSpec("P")
T = TypeVar("T")

# So many of all threads, so that tools can be read and written meanwhile.
READERS = 4
# To read a document is work for the processor: more at once would not be done sooner, and keep everybody waiting.
WRITERS = 2
QUEUE = 1_000
PATH = "path"


class Asking:
    """Has the queue asked in some of the threads; whoever finds them taken waits a while, and is told to come again."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._readers = Admission(READERS, QUEUE)
        self._writers = Admission(WRITERS, QUEUE)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something looked up."""
        async with self._readers:
            with without_folders():
                return await self._threads.read(work, *args, **kwargs)

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something changed."""
        async with self._writers:
            with without_folders():
                return await self._threads.write(work, *args, **kwargs)


@contextmanager
def without_folders() -> Iterator[None]:
    """Tell what is wrong with a file by its name: where it lies is for those on this machine."""
    try:
        yield
    except ToolError as problem:
        path = problem.details.get(PATH)
        if not isinstance(path, str) or not PurePath(path).is_absolute():
            raise
        name = PurePath(path).name
        raise ToolError(
            problem.kind,
            problem.message.replace(show(path), show(name)).replace(path, name),
            retryable=problem.retryable,
            partial_side_effects=problem.partial_side_effects,
            details={**problem.details, PATH: name},
        ) from problem


# MERGED toolcrib.faces.http.packages

# The package that a client delivers: files by their paths, in the body of a request and then in a folder.

MAX_NAME_BYTES = 255
SHOWN = 80
# What those who made it call it, in complaints and in the history.
FOLDER = "package"


@asynccontextmanager
async def written(files: Mapping[str, bytes], threads: Threads) -> AsyncIterator[Path]:
    """The files in a folder of their own, for as long as it is used."""
    with _explained():
        directory = TemporaryDirectory(prefix="toolcrib-delivery-", ignore_cleanup_errors=True)
    with directory as place:
        writing = asyncio.ensure_future(threads.write(_write, Path(place) / FOLDER, files))
        try:
            yield await asyncio.shield(writing)
        finally:
            # What is still being written would outlive the folder.
            await asyncio.wait({writing})


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    with _explained():
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content)
    return folder


@contextmanager
def _explained() -> Iterator[None]:
    """Tell that the fault is the server's, and not where on its disk."""
    try:
        yield
    except OSError as problem:
        message = f"the server has no place for what was delivered: {problem.strerror}; look at its TMPDIR and its disk"
        raise ToolError(Kind.INTERNAL, message) from problem


def files_of(body: Mapping[str, object]) -> dict[str, bytes]:
    """The files of a body: those of `files` are texts, those of `binary` base64."""
    texts, binary = _texts(body, "files"), _texts(body, "binary")
    if len(texts) + len(binary) > MAX_FILES or not (texts or binary):
        raise ToolError(Kind.VALIDATION, f"body: files: send 1 to {MAX_FILES} files, each by its path")
    _check_paths((*texts, *binary))
    return {
        **{path: _encode(path, text) for path, text in texts.items()},
        **{path: _decode(path, text) for path, text in binary.items()},
    }


def _texts(body: Mapping[str, object], key: str) -> dict[str, str]:
    value = body.get(key, {})
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise ToolError(Kind.VALIDATION, f'body: {key}: must be an object of texts; write {{"name.py": "…"}}')


def _encode(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        message = f"body: files: {path!r:.{SHOWN}} holds half of a character; send it as base64 in binary"
        raise ToolError(Kind.VALIDATION, message) from None


def _decode(path: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ToolError(Kind.VALIDATION, f"body: binary: {path!r:.{SHOWN}} is no base64") from None


def _check_paths(paths: tuple[str, ...]) -> None:
    """Refuse what would lead out of the folder, would be left behind, or means one place twice."""
    taken: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        _check_path(path)
        # A disk that knows no capitals would keep one of two.
        key = path.casefold()
        if key in taken:
            raise ToolError(Kind.VALIDATION, f"body: {path!r:.{SHOWN}} is sent twice; send it once, by one name")
        taken.add(key)
        words = key.split("/")
        folders.update("/".join(words[:end]) for end in range(1, len(words)))
    if both := taken & folders:
        raise ToolError(Kind.VALIDATION, f"body: {min(both)!r:.{SHOWN}} is a file and a folder; rename one of them")


def _check_path(path: str) -> None:
    parts = path.split("/")
    if "" in parts or "\\" in path or not path.isprintable() or len(parts) > MAX_DEPTH:
        message = f"body: {path!r:.{SHOWN}} is no path within the package; write name.py or folder/name.py"
        raise ToolError(Kind.VALIDATION, message)
    for name in parts:
        if is_foreign(name) or len(name.encode()) > MAX_NAME_BYTES:
            message = f"body: {path!r:.{SHOWN}}: {name!r:.{SHOWN}} is no part of a package; leave it out, or rename it"
            raise ToolError(Kind.VALIDATION, message)


LISTED = 100
MAX_LISTED_BYTES = 8_000_000
FIRST_ASKED = 32
MAX_NUMBER = 2**31 - 1
# A client that waits longer asks again; proxies on the way give up sooner than the server.
MAX_WAIT_SECONDS = 30
# So many are proved at once: each starts processes of its own.
MAX_DELIVERIES = 2
DELIVERY_SECONDS = 10
WISH_KEYS = frozenset({"yaml", "request"})
DELIVERY_KEYS = frozenset({"files", "binary"})
NUMBER = re.compile("[0-9]{1,9}")


class RequestDesk:
    """Answers what is asked about requests."""

    def __init__(self, crib: Crib, threads: Threads, asking: Asking, service: Service) -> None:
        self._crib = crib
        self._threads = threads
        self._asking = asking
        self._body_bytes = crib.settings.http_body_bytes
        self._listening = Listening(crib, asking, service)
        self._deliveries = 0

    async def list(self, request: Request) -> Answer:
        """GET /requests: the newest of them, in the order in which they were filed."""
        query = Query(request, known=("status", "limit"))
        limit = query.number("limit", least=1, most=MAX_LISTED) or LISTED
        found = await self._asking.read(self._newest, _status(query), limit)
        return answer_json({"requests": [filed.to_json() for filed in found]})

    async def file(self, request: Request) -> Answer:
        """POST /requests: file one, under the id that it has or the next number of the day."""
        strict = Query(request, known=("strict",)).switch("strict")
        wish = await self._wish(request)
        submitted, is_new = await self._asking.write(self._file, wish, strict=strict)
        if not is_new:
            return answer_json(submitted.to_json())
        place = f"/requests/{quote(submitted.filed.id, safe='')}"
        return answer_json(submitted.to_json(), status=201, headers=((b"location", place.encode()),))

    async def read(self, request: Request) -> Answer:
        """GET /requests/{requestID}: one of them, with what happened to it."""
        refuse_query(request)
        filed, events = await self._asking.read(self._look, request.words[0])
        return answer_json({**filed.to_json(), "history": [event.to_json() for event in events]})

    async def history(self, request: Request) -> Answer:
        """GET /requests/{requestID}/history: what happened behind a number; `wait` is how long to wait for more."""
        query = Query(request, known=("after", "wait"))
        after = query.number("after", least=0, most=MAX_NUMBER) or 0
        seconds = query.number("wait", least=0, most=MAX_WAIT_SECONDS) or 0
        # Whoever waits with us is only seen to leave behind all that it sends.
        await request.body(self._body_bytes)
        filed, events = await self._asking.read(self._look, request.words[0], after)
        if seconds and not events and not filed.status.is_final:
            await until_gone(request, self._listening.until_news(request.words[0], after, seconds))
            filed, events = await self._asking.read(self._look, request.words[0], after)
        return answer_json({"status": str(filed.status), "history": [event.to_json() for event in events]})

    async def events(self, request: Request) -> Answer:
        """GET /requests/{requestID}/events: what happens to it, as it happens, until it is over."""
        refuse_query(request)
        after = _last_number(request)
        await request.body(self._body_bytes)
        await self._asking.read(self._crib.requests.show, request.words[0])
        return self._listening.stream(request, request.words[0], after)

    async def deliver(self, request: Request) -> Answer:
        """POST /requests/{requestID}/deliver: have proved and published what was made for it."""
        refuse_query(request)
        body = await read_keys(request, self._body_bytes, DELIVERY_KEYS)
        files = await self._threads.read(files_of, body)
        if self._deliveries >= MAX_DELIVERIES:
            message = f"{MAX_DELIVERIES} deliveries are being proved; deliver it again in {DELIVERY_SECONDS} s"
            again = (b"retry-after", b"%d" % DELIVERY_SECONDS)
            raise Refusal(429, Kind.OVERLOADED, message, headers=(again,))
        self._deliveries += 1
        try:
            filed = await until_gone(request, self._deliver(request.words[0], files))
        finally:
            self._deliveries -= 1
        return answer_json(filed.to_json())

    async def cancel(self, request: Request) -> Answer:
        """POST /requests/{requestID}/cancel: nobody wants it any more."""
        refuse_query(request)
        body = await read_any_keys(request, self._body_bytes, frozenset({"reason"}))
        reason = text_of(body, "reason") or ""
        return answer_json((await self._asking.write(self._crib.requests.cancel, request.words[0], reason)).to_json())

    async def retry(self, request: Request) -> Answer:
        """POST /requests/{requestID}/retry: have it built again."""
        refuse_query(request)
        await read_any_keys(request, self._body_bytes, frozenset())
        return answer_json((await self._asking.write(self._crib.requests.retry, request.words[0])).to_json())

    async def allow(self, request: Request) -> Answer:
        """PUT /requests/{requestID}/allowance: what the operator adds to it."""
        refuse_query(request)
        body = await read_object(request, self._body_bytes)
        return answer_json((await self._asking.write(self._allow, request.words[0], body)).to_json())

    async def experiments(self, request: Request) -> Answer:
        """GET /experiments: everything that waits or waited for a tool."""
        refuse_query(request)
        found = await self._asking.read(self._crib.requests.experiments)
        return answer_json({"experiments": [one.to_json() for one in found]})

    async def _wish(self, request: Request) -> Wish:
        """What is asked for: YAML itself, or JSON with the YAML or its fields in it."""
        text = await read_yaml(request, self._body_bytes)
        if text is not None:
            return text
        found = await read_keys(request, self._body_bytes, WISH_KEYS)
        if len(found) != 1:
            raise ToolError(Kind.VALIDATION, "body: write either yaml, the request as text, or request, its fields")
        [(key, wish)] = found.items()
        if isinstance(wish, str if key == "yaml" else dict):
            return wish
        raise ToolError(Kind.VALIDATION, f"body: {key}: must be {'a text' if key == 'yaml' else 'an object'}")

    def _newest(self, status: Status | None, limit: int) -> Sequence[Filed]:
        """The newest that fit into one answer, asked for little by little: a queue hands them out with all their texts."""
        asked = FIRST_ASKED
        while True:
            found = self._crib.requests.list(status, limit=min(asked, limit))
            fitting = _that_fit(found)
            if len(fitting) < len(found) or len(found) < asked or asked >= limit:
                return fitting
            asked *= 2

    def _allow(self, request_id: str, body: Mapping[str, object]) -> Filed:
        return self._crib.requests.allow(request_id, read_allowance(body, place="body"))

    def _file(self, wish: Wish, *, strict: bool) -> tuple[Submitted, bool]:
        """File it; whether it is a request that was not there before."""
        requests = self._crib.requests
        was_there = self._is_filed(_id_of(wish))
        # Where the operator is strict, no client is less so.
        submitted = requests.new(wish, strict=strict or None)
        return submitted, not (was_there or submitted.merged)

    def _is_filed(self, request_id: str) -> bool:
        try:
            return bool(request_id) and bool(self._crib.requests.show(request_id))
        except ToolError as problem:
            if problem.kind is not Kind.NOT_FOUND:
                raise
            return False

    def _look(self, request_id: str, after: int = 0) -> tuple[Filed, Events]:
        # In this order: what ended it is in its history by then.
        filed = self._crib.requests.show(request_id)
        return filed, self._crib.requests.history(request_id, after)

    async def _deliver(self, request_id: str, files: Mapping[str, bytes]) -> Filed:
        with without_folders():
            async with written(files, self._threads) as folder:
                return await self._crib.requests.deliver(request_id, folder)


def _status(query: Query) -> Status | None:
    if not query.has("status"):
        return None
    word = query.text("status")
    if word not in set(Status):
        raise ToolError(Kind.VALIDATION, f"query: status: write one of {', '.join(Status)}")
    return Status(word)


def _that_fit(found: Sequence[Filed]) -> Sequence[Filed]:
    """The newest whose texts are no more in all than one answer should hold, and the newest of all."""
    size = 0
    for place, filed in enumerate(reversed(found)):
        size += len(filed.text.encode())
        if size > MAX_LISTED_BYTES and place:
            return found[-place:]
    return found


def _last_number(request: Request) -> int:
    """The number of the last event that a client heard before it lost its connection."""
    if not request.has(b"last-event-id"):
        return 0
    last = request.header(b"last-event-id")
    if not NUMBER.fullmatch(last):
        raise ToolError(Kind.VALIDATION, "the header Last-Event-ID is no number; send the id of the last event heard")
    return int(last)


def _id_of(wish: Wish) -> str:
    """The id that a request brings along; empty if it has none."""
    if isinstance(wish, Mapping):
        return str(wish.get("id") or "")
    text = wish.decode(errors="replace") if isinstance(wish, bytes) else wish
    return readable_id(text) if len(text) <= MAX_TEXT_BYTES else ""
