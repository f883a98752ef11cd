"""Answer the requests of clients: one dispatcher for both transports and all versions of the protocol."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from toolcrib.core.sources import call_mode
from toolcrib.interfaces.mcp.client_link import (
    ClientContext,
    OpenQuestions,
    Peer,
    RequestLink,
    SessionLink,
)
from toolcrib.interfaces.mcp.confirmation import ask_for_approval, is_unconfirmed, wait_for_approval
from toolcrib.interfaces.mcp.conversations import Conversations
from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.interfaces.mcp.parked import ParkedRequests
from toolcrib.interfaces.mcp.publications import ServedPublications
from toolcrib.interfaces.mcp.seals import Sessions
from toolcrib.interfaces.mcp.search_tools import ALWAYS, CALL, SearchTools, text_of
from toolcrib.interfaces.mcp.settings import McpSettings
from toolcrib.interfaces.mcp.subscriptions import LISTS, Changes, Listener, is_uri, read_filter
from toolcrib.interfaces.mcp.tool_list import ToolList, read_cursor, write_cursor
from toolcrib.interfaces.mcp.tool_results import to_wire
from toolcrib.interfaces.mcp.versions import FRESH_MS, LOG_LEVEL_KEY, SUBSCRIPTION_KEY, complete, discover
from toolcrib.lib.hidden_text import restore_hidden
from toolcrib.lib.seal import Seal
from toolcrib.model.call import LOG_LEVELS, Call, Consent, plain_call
from toolcrib.model.errors import Kind, Reader, ToolError
from toolcrib.model.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.client_link import Outlet
    from toolcrib.interfaces.mcp.messages import Id, Params, Request
    from toolcrib.interfaces.mcp.parked import Work
    from toolcrib.interfaces.mcp.tool_definitions import ServedTool
    from toolcrib.model.call import ClientLink

    Handler = Callable[[Request, Peer, Outlet], Coroutine[object, object, object]]

logger = logging.getLogger("toolcrib.mcp")

DEFAULT_LEVEL = "info"
STATES_KEPT = 10_000
MAX_SUBSCRIPTIONS = 100
# Requests that may send something before they are answered.
MAY_SEND_FIRST = frozenset({"prompts/get", "resources/read", "subscriptions/listen"})


@dataclass(slots=True)
class SessionState:
    """What a session of the older wire has set since it was opened; a restart of the server forgets it."""

    log_level: str = DEFAULT_LEVEL
    uris: set[str] = field(default_factory=set)


class RunningRequests:
    """The requests that are being answered, so that their client can cancel them."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, Id], _Held] = {}

    def hold(self, peer: Peer, request_id: Id) -> _Held:
        """Remember a request within a `with` block, which one that is cancelled leaves with an error of the protocol."""
        return _Held(self._held, (peer.caller, peer.session, request_id))

    def cancel(self, peer: Peer, params: Params) -> None:
        """Cancel the request that a notification names, if it is one of this client."""
        request_id = params.get("requestId")
        # In Python True is 1 and False is 0, which are ids of other requests.
        if (
            isinstance(request_id, str | int)
            and not isinstance(request_id, bool)
            and (held := self._held.get((peer.caller, peer.session, request_id)))
        ):
            held.cancel()


class _Held:
    """A request that is being answered by the current task."""

    def __init__(self, held: dict[tuple[str, str, Id], _Held], place: tuple[str, str, Id]) -> None:
        self._held = held
        self._place = place
        self._task = asyncio.current_task()
        self._is_cancelled = False

    def __enter__(self) -> None:
        if self._held.setdefault(self._place, self) is not self:
            raise ProtocolError(Code.INVALID_REQUEST, "a request with this id is being answered; use another id")

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._held[self._place]
        if self._is_cancelled and self._task is not None and isinstance(problem, asyncio.CancelledError):
            self._task.uncancel()
            raise RequestCancelledError from None

    def cancel(self) -> None:
        """Stop the work on it."""
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = self._task.cancel()


class RequestCancelledError(ProtocolError):
    """The client has cancelled the request, and expects no answer."""

    def __init__(self) -> None:
        super().__init__(Code.INTERNAL, "the request was cancelled")


class McpServer:
    """Serves one crib. A transport hands it requests with their peers, and an outlet for what is sent before the answer.

    `admission` limits the calls that run at once, and `note_call` is called with the result of each. Streams of changes end when `ending`
    is set, and after `stream_seconds`.
    """

    def __init__(
        self,
        crib: Crib,
        *,
        admission: Callable[[], AbstractAsyncContextManager[None]] | None = None,
        note_call: Callable[[str, Result], None] = lambda _, __: None,
        ending: asyncio.Event | None = None,
        stream_seconds: float | None = None,
    ) -> None:
        self._crib = crib
        self._admission = nullcontext if admission is None else admission
        self._note_call = note_call
        self._ending = asyncio.Event() if ending is None else ending
        self._stream_seconds = stream_seconds
        self.tools = ToolList(crib)
        self.sessions = Sessions(Seal(lambda: crib.derive_key("mcp session")), crib.expiring("mcpsessions"))
        self.running = RunningRequests()
        limits = crib.settings.table(McpSettings)
        self._questions = limits.questions
        self.questions = OpenQuestions(limits.questions)
        self.changes = Changes(crib, limits.streams)
        self._parked = ParkedRequests(Seal(lambda: crib.derive_key("mcp request state")), limits.questions)
        self._search = SearchTools(crib)
        self._published = ServedPublications(crib)
        self._states: OrderedDict[str, SessionState] = OrderedDict()
        self._waiting: Counter[str] = Counter()
        self._conversations = Conversations(crib)
        # Whether the operator takes the answer of a client for that of a person.
        self._elicits: bool = crib.settings["approvals"].elicitation
        self._handlers: dict[str, Handler] = {
            "server/discover": self._discover,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self._listen,
        }

    def may_send(self, request: Request) -> bool:
        """Whether something may be sent to the client before the request is answered."""
        if request.method != "tools/call":
            return request.method in MAY_SEND_FIRST
        served = self.tools.called_by(request)
        return request.params.get("name") == CALL or (served is not None and (served.may_ask or self._elicits))

    async def answer(self, request: Request, peer: Peer, outlet: Outlet) -> object:
        """The result of a request; raises ProtocolError where it cannot be carried out."""
        handler = self._handlers.get(request.method) if request.method in peer.wire.methods else None
        if handler is None:
            raise ProtocolError(Code.METHOD_NOT_FOUND, f"there is no method {request.method!r:.100} in this version")
        try:
            if peer.session:
                with self.running.hold(peer, request.id):
                    result = await handler(request, peer, outlet)
            else:
                result = await handler(request, peer, outlet)
        except ToolError as problem:
            told = problem.told_to(await self._reader())
            raise ProtocolError(Code.INTERNAL, told.message, data={"type": str(problem.kind)}) from problem
        except (ProtocolError, asyncio.CancelledError):
            raise
        except Exception as problem:
            logger.exception("a request for %s failed", request.method)
            raise ProtocolError(Code.INTERNAL, "the server failed; its log has the reason") from problem
        return complete(result) if peer.wire.is_stateless and isinstance(result, dict) else result

    def state(self, session: str) -> SessionState:
        """What a session has set."""
        state = self._states.get(session)
        if state is None:
            state = self._states[session] = SessionState()
            if len(self._states) > STATES_KEPT:
                self._states.popitem(last=False)
        return state

    def forget(self, session: str) -> None:
        """A session has ended."""
        self._states.pop(session, None)
        self.questions.close(session)

    def close(self) -> None:
        """End what still waits, and what listens."""
        self._ending.set()
        self._parked.close()
        self.changes.close()

    # --- what every client asks first ----------------------------------------------------------------------------------

    async def _discover(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        return discover()

    async def _ping(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        return {}

    async def _set_level(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        level = request.params.get("level")
        if level not in LOG_LEVELS:
            raise ProtocolError(Code.INVALID_PARAMS, f"level: must be one of {', '.join(LOG_LEVELS)}")
        self.state(peer.session).log_level = str(level)
        return {}

    # --- tools ---------------------------------------------------------------------------------------------------------

    async def _list_tools(self, request: Request, peer: Peer, outlet: Outlet) -> object:
        return await self.tools.page(peer.wire, request.params)

    async def _call_tool(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        params = request.params
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not name:
            raise ProtocolError(Code.INVALID_PARAMS, "name: must be the name of a tool")
        if not isinstance(arguments, dict):
            raise ProtocolError(Code.INVALID_PARAMS, "arguments: must be an object")
        if (name == CALL or self._search.has(name)) and (name in ALWAYS or await self.tools.is_large()):
            return await self._call_own(name, arguments, request, peer, outlet)
        return await self._call(self.tools.called_by(request), name, arguments, request, peer, outlet)

    async def _call(
        self, served: ServedTool | None, name: str, arguments: Params, request: Request, peer: Peer, outlet: Outlet
    ) -> Params:
        if served is not None and served.escaped:
            arguments = cast("Params", restore_hidden(arguments, served.escaped))
        if served is None or not (served.may_ask or self._elicits):
            if "requestState" in request.params:
                raise ProtocolError(Code.INVALID_PARAMS, "requestState: this tool asked nothing")
            result = await self._perform(self._make(name, arguments, peer, served), served)
            return to_wire(result if result.error is None else result.told_to(await self._reader()), served, peer.wire)

        async def work(link: ClientLink) -> Params:
            # A tool that does not use its client takes the fast path, even if the client may be asked for approval.
            client = link if served.may_ask else None
            result = await self._perform(self._make(name, arguments, peer, served, client), served, link)
            _refuse_undeclared(result, link, peer)
            return to_wire(result.told_to(await self._reader()), served, peer.wire)

        return await self._converse(request, peer, outlet, work)

    def _make(
        self,
        name: str,
        arguments: Params,
        peer: Peer,
        served: ServedTool | None,
        client: ClientLink | None = None,
    ) -> Call:
        """The call of a client, which another person has to approve where that is needed."""
        mode, session = call_mode(None), self._conversations.session(peer, served)
        if mode is None and session is None and client is None:
            return plain_call(name, arguments, peer.caller, consent=Consent.PERSON)
        return Call(
            name=name,
            arguments=arguments,
            caller=peer.caller,
            consent=Consent.PERSON,
            mode=mode,
            session=session,
            client=client,
        )

    async def _call_own(self, name: str, arguments: Params, request: Request, peer: Peer, outlet: Outlet) -> Params:
        """Call a tool of this interface itself."""
        try:
            if name != CALL:
                return await self._search.perform(name, arguments)
            inner, given = text_of(arguments, "name"), arguments.get("arguments", {})
            if not isinstance(given, dict):
                raise ToolError(Kind.VALIDATION, "arguments: must be an object")
        except ToolError as problem:
            return to_wire(Result(error=problem.told_to(await self._reader()), refused=True), None, peer.wire)
        return await self._call(self.tools.find(inner), inner, given, request, peer, outlet)

    async def _reader(self) -> Reader:
        """The reader of an error, which decides its cure: a model that searches a large catalogue, or one that has the list."""
        return Reader.SEARCHER if await self.tools.is_large() else Reader.MODEL

    async def _perform(self, call: Call, served: ServedTool | None, link: ClientLink | None = None) -> Result:
        name = "" if served is None else call.name
        try:
            result = await self._admitted(call)
            if is_unconfirmed(result) and link is not None and self._elicits:
                result = await ask_for_approval(result, call, self._admitted, self._crib.approvals, link)
            if is_unconfirmed(result):
                result = await self._wait_for_approval(result, call)
        except asyncio.CancelledError:
            self._note_call(name, Result(error=ToolError(Kind.CANCELLED, "the call was cancelled")))
            raise
        self._note_call(name, result)
        return result

    async def _admitted(self, call: Call) -> Result:
        """Make the call once it is admitted."""
        try:
            async with self._admission():
                return await self._crib.perform(call)
        except ToolError as problem:
            return Result(error=problem, refused=True)

    async def _wait_for_approval(self, result: Result, call: Call) -> Result:
        """Wait for a person, unless too many calls of the caller wait already: each polls for its decision."""
        is_patient = self._waiting[call.caller] < self._questions
        seconds = self._crib.settings["approvals"].wait_seconds if is_patient else 0
        self._waiting[call.caller] += 1
        try:
            return await wait_for_approval(result, call, self._admitted, self._crib.approvals, seconds)
        finally:
            self._waiting[call.caller] -= 1
            if not self._waiting[call.caller]:
                del self._waiting[call.caller]

    async def _converse(self, request: Request, peer: Peer, outlet: Outlet, work: Work) -> Params:
        """Carry out work that may ask the client something, as its version of the protocol does."""
        if peer.wire.is_stateless:
            return await self._parked.carry_out(request, peer, outlet, work)
        return await work(SessionLink(peer, request, outlet, self.questions))

    # --- resources and prompts -----------------------------------------------------------------------------------------

    async def _list_resources(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        page = await asyncio.to_thread(self._published.list_resources, read_cursor(request.params))
        return _listed("resources", page, peer)

    async def _list_templates(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        return _listed("resourceTemplates", self._published.list_templates(read_cursor(request.params)), peer)

    async def _list_prompts(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        return _listed("prompts", self._published.list_prompts(read_cursor(request.params)), peer)

    async def _read_resource(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        uri = _read_uri(request)

        async def work(link: ClientLink) -> Params:
            found = await self._published.read(uri, peer, ClientContext(caller=peer.caller, client=link))
            return found if peer.wire.is_stateless else {"contents": found["contents"]}

        return await self._ask_for(request, peer, outlet, work)

    async def _get_prompt(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str):
            raise ProtocolError(Code.INVALID_PARAMS, "name: must be the name of a prompt")
        if not isinstance(arguments, dict):
            raise ProtocolError(Code.INVALID_PARAMS, "arguments: must be an object")

        async def work(link: ClientLink) -> Params:
            return await self._published.get_prompt(name, arguments, ClientContext(caller=peer.caller, client=link))

        return await self._ask_for(request, peer, outlet, work)

    async def _ask_for(self, request: Request, peer: Peer, outlet: Outlet, work: Work) -> Params:
        """Carry out work of a prompt or a resource; a question that the client cannot answer becomes the error that its version defines."""
        try:
            return await self._converse(request, peer, outlet, work)
        except ToolError as problem:
            capability = problem.details.get("clientCapability")
            if not peer.wire.is_stateless or not isinstance(capability, str):
                raise
            raise _undeclared(capability, problem) from problem

    async def _complete(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        reference, argument = request.params.get("ref"), request.params.get("argument")
        if not isinstance(reference, dict) or not isinstance(argument, dict):
            raise ProtocolError(Code.INVALID_PARAMS, "ref and argument: must be objects")
        name, value = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise ProtocolError(Code.INVALID_PARAMS, "argument: must have a name and a value")
        return await asyncio.to_thread(self._published.complete, reference, name, value)

    # --- changes -------------------------------------------------------------------------------------------------------

    async def _subscribe(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        uris = self.state(peer.session).uris
        if len(uris) >= MAX_SUBSCRIPTIONS:
            raise ProtocolError(Code.INVALID_PARAMS, f"at most {MAX_SUBSCRIPTIONS} resources may be watched")
        uris.add(_read_uri(request))
        return {}

    async def _unsubscribe(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        self.state(peer.session).uris.discard(_read_uri(request))
        return {}

    async def _listen(self, request: Request, peer: Peer, outlet: Outlet) -> Params:
        """Send changes until the client disconnects, the server ends, or the stream reaches its time limit."""
        lists, uris = read_filter(request.params)
        listener = Listener(peer, outlet, lists, uris, request.id)
        try:
            await self.changes.add(listener)
            listener.acknowledge()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), self._stream_seconds)
        finally:
            self.changes.remove(listener)
        return {"_meta": {SUBSCRIPTION_KEY: request.id}}

    async def listen_to_all(self, peer: Peer, outlet: Outlet) -> Listener:
        """Notify a session of the older wire of every change, and of the resources that it watches, until it is removed."""
        listener = Listener(peer, outlet, frozenset(LISTS), self.state(peer.session).uris)
        await self.changes.add(listener)
        return listener


def log_level_of(request: Request) -> str:
    """The least urgent messages that a stateless request wants; empty for none."""
    level = request.meta.get(LOG_LEVEL_KEY)
    if level is not None and level not in LOG_LEVELS:
        raise ProtocolError(
            Code.INVALID_PARAMS, f"params._meta: {LOG_LEVEL_KEY!r} must be one of {', '.join(LOG_LEVELS)}"
        )
    return "" if level is None else str(level)


def _refuse_undeclared(result: Result, link: ClientLink, peer: Peer) -> None:
    """A call that failed because its client cannot be asked is an error of the stateless wire, and a result of the older one."""
    missing = link.missing if isinstance(link, RequestLink) else ""
    if peer.wire.is_stateless and missing and result.error is not None and result.error.kind is Kind.CAPABILITY_MISSING:
        raise _undeclared(missing, result.error)


def _undeclared(capability: str, problem: ToolError) -> ProtocolError:
    return ProtocolError(Code.MISSING_CAPABILITY, problem.message, data={"requiredCapabilities": {capability: {}}})


def _read_uri(request: Request) -> str:
    uri = request.params.get("uri")
    if not is_uri(uri):
        raise ProtocolError(Code.INVALID_PARAMS, "uri: must be the URI of a resource")
    return str(uri)


def _listed(key: str, page: tuple[list[Params], int | None], peer: Peer) -> Params:
    items, next_place = page
    result: Params = {key: items}
    if next_place is not None:
        result["nextCursor"] = write_cursor(next_place)
    return result | ({"ttlMs": FRESH_MS, "cacheScope": "private"} if peer.wire.is_stateless else {})
