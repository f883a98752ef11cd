"""Reach the client during one request: send progress and log messages, and ask questions."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, cast

from toolcrib.interfaces.mcp.messages import Code, ProtocolError, write_notification, write_request
from toolcrib.lib.hidden_text import show_hidden, show_hidden_in
from toolcrib.lib.schema import accepts
from toolcrib.model.call import ELICIT, LOG_LEVELS, ROOTS, SAMPLE, ReachesClient, cannot_ask
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.interfaces.mcp.messages import Id, Params, Request, Response
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.model.call import ClientLink, Question

PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"
# What a client must have declared for each question.
CAPABILITIES = {ELICIT: "elicitation", SAMPLE: "sampling", ROOTS: "roots"}
ACTIONS = frozenset({"accept", "decline", "cancel"})
MAX_QUESTIONS = 16
MAX_TOKEN_LETTERS = 256
MAX_KEY_LETTERS = 128
# More of a chunk is in the result.
MAX_CHUNK_LETTERS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """The client of a request: its identity, its version of the protocol, and its capabilities.

    `session` is the id of its session on the older wire. `log_level` is the least urgent level of messages that it wants;
    empty for none.
    """

    caller: str
    wire: Wire
    capabilities: Mapping[str, object] = field(default_factory=dict)
    session: str = ""
    log_level: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientContext(ReachesClient):
    """What the code of a prompt or a resource may use."""

    caller: str
    client: ClientLink | None


class Outlet(Protocol):
    """Takes messages for the client of a request, in their order."""

    def __call__(self, message: bytes, /) -> None:
        """Send a message; it is dropped once the client is gone."""


class RequestLink:
    """Reaches the client of one request; subclasses ask questions as its version of the protocol does."""

    def __init__(self, peer: Peer, request: Request, outlet: Outlet) -> None:
        # The capability that a question was refused for.
        self.missing = ""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._numbers = itertools.count(1)
        # How many chunks were sent as figures of progress; none, once the tool gives figures of its own.
        self._chunks = 0
        self._has_figures = False
        self.attach(peer, request, outlet)

    @property
    def takes_chunks(self) -> bool:
        """Whether the client wants progress, which is the only way to send it something before the result."""
        return self._token is not None

    @property
    def can_ask(self) -> bool:
        """Whether the client has declared that it answers any question."""
        return any(isinstance(self.peer.capabilities.get(name), dict) for name in CAPABILITIES.values())

    def attach(self, peer: Peer, request: Request, outlet: Outlet) -> None:
        """Send to this request from now on, with its progress token, log level and capabilities."""
        self.peer = peer
        token = request.meta.get("progressToken")
        is_token = (isinstance(token, str) and len(token) <= MAX_TOKEN_LETTERS) or type(token) is int
        self._token = token if is_token else None
        self._outlet = outlet

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Send a figure, if the client gave a token for it."""
        self._has_figures = True
        # Figures have to grow, and those of chunks may be further on.
        if self._token is None or (self._chunks and progress <= self._chunks):
            return
        self._send_figure(progress, total, message)

    async def chunk(self, value: object) -> None:
        """Send a chunk as the message of a figure: clients show it to their users, and never to a model as the result."""
        if self._token is None or self._has_figures:
            return
        self._chunks += 1
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._send_figure(self._chunks, None, text[:MAX_CHUNK_LETTERS])
        await asyncio.sleep(0)  # the loop writes it, before a tool that never waits yields the next one

    def _send_figure(self, progress: float, total: float | None, message: str) -> None:
        params: Params = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = show_hidden(message)
        self.send(write_notification(PROGRESS, params))

    def log(self, level: str, data: object, logger: str) -> None:
        """Send a message, if the client wants messages of this level."""
        wanted = self.peer.log_level
        if not wanted or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        params: Params = {"level": level, "data": show_hidden_in(data)}
        if logger:
            params["logger"] = show_hidden(logger)
        self.send(write_notification(MESSAGE, params))

    def send(self, message: bytes) -> None:
        """Send a message, from any thread."""
        if threading.get_ident() == self._thread:
            self._outlet(message)
        else:
            self._loop.call_soon_threadsafe(lambda: self._outlet(message))

    async def ask(self, question: Question) -> Params:
        """The answer of the client; raises ToolError where it cannot be asked."""
        self.require(question.method)
        # A user or a model reads it, and must not be shown less than is there.
        question = replace(question, params=cast("Params", show_hidden_in(dict(question.params))))
        answer = await self._put(question, question.key or f"{CAPABILITIES[question.method]}-{next(self._numbers)}")
        return check_answer(question, answer)

    def require(self, method: str) -> None:
        """Refuse a question that the client has not declared itself able to answer."""
        name = CAPABILITIES.get(method, "")
        declared = self.peer.capabilities.get(name)
        if not isinstance(declared, dict) or (method == ELICIT and not _takes_forms(declared, self.peer.wire)):
            self.missing = name
            raise cannot_ask(method)

    async def _put(self, question: Question, key: str) -> object:
        raise cannot_ask(question.method)


class SessionLink(RequestLink):
    """Asks a question as a request of the server; the answer arrives as a separate message."""

    def __init__(self, peer: Peer, request: Request, outlet: Outlet, open_questions: OpenQuestions) -> None:
        super().__init__(peer, request, outlet)
        self._open = open_questions

    async def _put(self, question: Question, key: str) -> object:
        del key
        with self._open.question(self.peer) as (number, answer):
            self.send(write_request(number, question.method, question.params))
            return await answer


class OpenQuestions:
    """Questions to clients of the older wire that wait for an answer; each is bound to the session that it was put to.

    A caller may open any number of sessions, and each call that asks keeps a place among those that run: so `most` may wait for
    the answers of one caller.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._numbers = itertools.count(1)
        self._waiting: dict[tuple[str, str, Id], asyncio.Future[Params]] = {}

    def question(self, peer: Peer) -> _Question:
        """A new question to a client, open within a `with` block; refused where too many are."""
        sessions = [session for caller, session, _ in self._waiting if caller == peer.caller]
        if len(sessions) >= self._most or sessions.count(peer.session) >= MAX_QUESTIONS:
            message = f"{len(sessions)} questions to this client wait for an answer"
            raise ToolError(Kind.OVERLOADED, message, retryable=True)
        number = f"crib-{next(self._numbers)}"
        return _Question(self._waiting, (peer.caller, peer.session, number))

    def answer(self, response: Response, peer: Peer) -> bool:
        """Resolve the question that an answer is for; False if this client was not asked it."""
        waiting = self._waiting.get((peer.caller, peer.session, response.id))
        if waiting is None or waiting.done():
            return False
        if response.result is None:
            waiting.set_exception(
                ToolError(Kind.PERMANENT, f"the client refused the question: {response.error!s:.500}")
            )
        else:
            waiting.set_result(response.result)
        return True

    def close(self, session: str) -> None:
        """Fail the open questions to a session that has ended."""
        for (_, asked, _), waiting in list(self._waiting.items()):
            if asked == session and not waiting.done():
                waiting.set_exception(ToolError(Kind.SESSION_INACTIVE, "the session of the client has ended"))


class _Question:
    """One question to a client of the older wire."""

    def __init__(self, waiting: dict[tuple[str, str, Id], asyncio.Future[Params]], place: tuple[str, str, str]) -> None:
        self._waiting = waiting
        self._place = place

    def __enter__(self) -> tuple[str, asyncio.Future[Params]]:
        answer = self._waiting[self._place] = asyncio.get_running_loop().create_future()
        return self._place[2], answer

    def __exit__(self, *_: object) -> None:
        answer = self._waiting.pop(self._place)
        answer.cancel()


class StatelessLink(RequestLink):
    """Collects questions, which the answer to the request carries; the client repeats the request with the answers.

    `answers` are those that came with the request, by their keys. `wake` is called when a question has no answer yet.
    """

    def __init__(self, peer: Peer, request: Request, outlet: Outlet, answers: Params, wake: Callable[[], None]) -> None:
        super().__init__(peer, request, outlet)
        self._answers = answers
        self._wake = wake
        self.open: dict[str, tuple[Question, asyncio.Future[Params]]] = {}

    def input_requests(self) -> Params:
        """The questions that are open, as the client gets them."""
        return {
            key: {"method": question.method, "params": dict(question.params)}
            for key, (question, _) in self.open.items()
        }

    def give(self, answers: Params) -> None:
        """Answer the open questions; ignore everything else. Raises for an invalid answer."""
        found = {
            key: check_answer(question, answers[key]) for key, (question, _) in self.open.items() if key in answers
        }
        for key, answer in found.items():
            _, waiting = self.open.pop(key)
            if not waiting.done():
                waiting.set_result(answer)

    async def _put(self, question: Question, key: str) -> object:
        if len(key) > MAX_KEY_LETTERS or key in self.open or len(self.open) >= MAX_QUESTIONS:
            message = f"a call asks at most {MAX_QUESTIONS} questions at once, each under a short key of its own"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        if key in self._answers:
            return self._answers.pop(key)
        waiting: asyncio.Future[Params] = self._loop.create_future()
        self.open[key] = question, waiting
        self._wake()
        try:
            return await waiting
        finally:
            self.open.pop(key, None)


def read_answers(params: Params) -> Params:
    """The answers that a repeated request carries; raises if they are invalid."""
    if "inputResponses" not in params:
        return {}
    given = params["inputResponses"]
    if not isinstance(given, dict) or not all(isinstance(answer, dict) for answer in given.values()):
        raise ProtocolError(Code.INVALID_PARAMS, "inputResponses: must be an object of objects")
    return given


def check_answer(question: Question, answer: object) -> Params:
    """An answer of the form that its question asks for; raises ToolError for another."""
    if not isinstance(answer, dict):
        raise _no_answer(question, "it is not an object")
    if question.method == ROOTS:
        roots = answer.get("roots")
        if not isinstance(roots, list) or not all(_is_root(root) for root in roots):
            raise _no_answer(question, "roots must be a list of objects with a uri")
        return answer
    if question.method == SAMPLE:
        if answer.get("role") not in ("user", "assistant") or not isinstance(answer.get("content"), dict | list):
            raise _no_answer(question, "it needs a role and a content")
        return answer
    action = answer.get("action")
    if action not in ACTIONS:
        raise _no_answer(question, f"its action must be one of {', '.join(sorted(ACTIONS))}")
    if action != "accept":
        return {"action": action}
    content, schema = answer.get("content", {}), question.params.get("requestedSchema")
    if not isinstance(content, dict) or not isinstance(schema, dict) or not _fits(schema, content):
        raise _no_answer(question, "its content is not what was asked for")
    return {"action": action, "content": content}


def _fits(schema: Params, content: Params) -> bool:
    """Whether the content is what the schema asks for; nothing fits an invalid schema, which the tool wrote."""
    try:
        return accepts(schema, content, {})
    except (ToolError, ValueError, TypeError, RecursionError):
        return False


def _is_root(root: object) -> bool:
    return isinstance(root, dict) and isinstance(root.get("uri"), str)


def _takes_forms(declared: Mapping[str, object], wire: Wire) -> bool:
    """Whether the client shows forms; one that says nothing of its modes does."""
    return wire.has_elicitation and ("form" in declared or "url" not in declared)


def _no_answer(question: Question, why: str) -> ToolError:
    message = f"the client's answer to {question.method} cannot be used: {why}"
    return ToolError(Kind.PERMANENT, message, details={"method": question.method})
