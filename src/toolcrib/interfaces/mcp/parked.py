"""Hold requests of the stateless wire that wait for an answer of their client, until the client repeats the request."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from toolcrib.interfaces.mcp.client_link import StatelessLink, read_answers
from toolcrib.interfaces.mcp.messages import Code, ProtocolError, overloaded
from toolcrib.lib.seal import new_nonce
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from toolcrib.interfaces.mcp.client_link import Outlet, Peer
    from toolcrib.interfaces.mcp.messages import Params, Request
    from toolcrib.lib.seal import Seal
    from toolcrib.model.call import ClientLink

    Work = Callable[[ClientLink], Coroutine[object, object, Params]]

MAX_PARKED = 1_000
PARKED_SECONDS = 300.0
# Turns of the event loop in which code that asks several questions at once gets to ask them all.
GATHER_TURNS = 4
NOT_BOUND = ("_meta", "inputResponses", "requestState")


class Parked:
    """One request whose work waits, as a task, for the answers of its client."""

    __slots__ = ("asked", "caller", "expiry", "fingerprint", "link", "nonce", "task")

    link: StatelessLink
    task: asyncio.Task[Params]

    def __init__(self, caller: str, fingerprint: str) -> None:
        self.caller = caller
        self.fingerprint = fingerprint
        self.asked = asyncio.Event()
        self.nonce = ""
        self.expiry: asyncio.TimerHandle | None = None


class ParkedRequests:
    """Holds the requests that wait, with limits on their number and time, and continues each once per state token.

    The state is untrusted input: it is signed, and bound to the caller and to everything that the request says. At most `most` of
    one caller wait.
    """

    def __init__(self, seal: Seal, most: int) -> None:
        self._seal = seal
        self._most = most
        self._waiting: dict[str, Parked] = {}
        self._by_caller: Counter[str] = Counter()

    async def carry_out(self, request: Request, peer: Peer, outlet: Outlet, work: Work) -> Params:
        """The result of the work, or the questions that it has to the client."""
        answers = read_answers(request.params)
        state = request.params.get("requestState")
        if state is None:
            parked = self._begin(request, peer, outlet, answers, work)
        else:
            parked = self._take(state, request, peer)
            parked.link.attach(peer, request, outlet)
            # An invalid answer is ignored: the question is asked again, under a new state.
            with suppress(ToolError):
                parked.link.give(answers)
        return await self._continue(parked)

    def close(self) -> None:
        """Give up every request that waits."""
        for parked in list(self._waiting.values()):
            self._give_up(parked)

    def _begin(self, request: Request, peer: Peer, outlet: Outlet, answers: Params, work: Work) -> Parked:
        parked = Parked(peer.caller, _fingerprint(request))
        parked.link = StatelessLink(peer, request, outlet, answers, parked.asked.set)
        parked.task = asyncio.create_task(work(parked.link))
        parked.task.add_done_callback(_forget_outcome)
        return parked

    async def _continue(self, parked: Parked) -> Params:
        """Wait for the end of the work, or for its next questions."""
        parked.asked.clear()
        asked = asyncio.ensure_future(parked.asked.wait())
        try:
            if not parked.link.open:
                await asyncio.wait({parked.task, asked}, return_when=asyncio.FIRST_COMPLETED)
            for _ in range(GATHER_TURNS):
                await asyncio.sleep(0)
            if parked.task.done():
                return parked.task.result()
        except asyncio.CancelledError:
            # The client is gone: the result has no receiver.
            await _cancel(parked.task)
            raise
        finally:
            asked.cancel()
        return {
            "resultType": "input_required",
            "inputRequests": parked.link.input_requests(),
            "requestState": self._park(parked),
        }

    def _park(self, parked: Parked) -> str:
        """Hold the request until its client repeats it; returns the state token for that."""
        if len(self._waiting) >= MAX_PARKED or self._by_caller[parked.caller] >= self._most:
            parked.task.cancel()
            message = f"at most {self._most} questions to one client may wait for an answer; try again later"
            raise overloaded(message, status=429)
        parked.nonce = new_nonce()
        self._waiting[parked.nonce] = parked
        self._by_caller[parked.caller] += 1
        parked.expiry = asyncio.get_running_loop().call_later(PARKED_SECONDS, self._give_up, parked)
        return self._seal.write([parked.nonce, int(time.time() + PARKED_SECONDS), parked.caller, parked.fingerprint])

    def _take(self, state: object, request: Request, peer: Peer) -> Parked:
        """The request that goes on with this state, once."""
        document = self._seal.read(state) if isinstance(state, str) else None
        if document is None:
            raise _refused("it was altered, or was not made here")
        nonce, expires_at, caller, fingerprint = document
        if caller != peer.caller or fingerprint != _fingerprint(request):
            raise _refused("it belongs to another request or another caller")
        if not isinstance(expires_at, int) or expires_at < time.time():
            raise _refused("it has expired")
        parked = self._waiting.get(str(nonce))
        if parked is None:
            raise _refused("it was used before, or the server was restarted since")
        self._release(parked)
        return parked

    def _release(self, parked: Parked) -> None:
        if self._waiting.pop(parked.nonce, None) is None:
            return
        self._by_caller[parked.caller] -= 1
        if not self._by_caller[parked.caller]:
            del self._by_caller[parked.caller]
        if parked.expiry is not None:
            parked.expiry.cancel()

    def _give_up(self, parked: Parked) -> None:
        self._release(parked)
        parked.task.cancel()


def _fingerprint(request: Request) -> str:
    """What is the same when the same request is made again."""
    said = {key: value for key, value in request.params.items() if key not in NOT_BOUND}
    try:
        text = orjson.dumps([request.method, said], option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # Integers beyond 64 bit.
        text = json.dumps([request.method, said], sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()


def _forget_outcome(task: asyncio.Task[Params]) -> None:
    """Consume the outcome of a task that is no longer awaited."""
    if not task.cancelled():
        task.exception()


async def _cancel(task: asyncio.Task[Params]) -> None:
    task.cancel()
    await asyncio.wait({task})


def _refused(why: str) -> ProtocolError:
    return ProtocolError(Code.INVALID_PARAMS, f"requestState: {why}; make the request again without it")
