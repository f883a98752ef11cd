"""What cases are tried on: the four things that a crib lends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from toolcrib.model.call import Call
    from toolcrib.model.result import Result
    from toolcrib.model.session import Send, Session
    from toolcrib.model.verdict import Verdict


class OpenSession(Protocol):
    """Opens a conversation."""

    def __call__(self, *, mode: str, state: Mapping[str, object], send: Send | None) -> Session:
        """A session with nothing behind it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """`refusal` is what would stop a call ahead, None if nothing; `journal` reads all that is on record, oldest first."""

    call: Callable[[Call], Awaitable[Result]]
    refusal: Callable[[Call], Verdict | None]
    session: OpenSession
    journal: Callable[[], Iterable[Mapping[str, object]]]
