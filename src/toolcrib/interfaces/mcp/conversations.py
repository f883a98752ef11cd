"""The session that the calls of one client share, so that rules and budgets about sessions hold for them.

On the older wire it belongs to the session that the client opened, on the stateless one to the caller.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.settings import McpSettings
from toolcrib.model.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.client_link import Peer
    from toolcrib.interfaces.mcp.tool_definitions import ServedTool

IDLE_SECONDS = 3_600.0
MAX_KEPT = 10_000


class Conversations:
    """The sessions of clients, each for as long as calls come; a restart of the server forgets them."""

    def __init__(self, crib: Crib, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = crib.settings.table(McpSettings).max_calls or None
        self._crib = crib
        self._clock = clock
        # In the order of their last call.
        self._kept: OrderedDict[tuple[str, str], tuple[Session, float]] = OrderedDict()

    def session(self, peer: Peer, served: ServedTool | None) -> Session | None:
        """The session of a call; None where neither a budget nor a rule could look at it, because such a call is quicker."""
        is_watched = self._most is not None or self._crib.has_own_rules
        if not is_watched and (served is None or not served.tool.requires):
            return None
        now = self._clock()
        place = (peer.caller, "" if peer.wire.is_stateless else peer.session)
        session, last = self._kept.pop(place, (None, 0.0))
        if session is None or now - last > IDLE_SECONDS:
            session = Session(id=os.urandom(12).hex(), max_calls=self._most)
        self._kept[place] = session, now
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return session
