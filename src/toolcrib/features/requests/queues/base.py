"""The methods that every queue has in the same form: what a Builder says about its claim, and what people decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from toolcrib.features.requests.queues.records import cannot_be_retried, cut, is_over, write_allowance

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.errors import ToolError
    from toolcrib.model.toolrequest import Allowance, Claim, Filed, Made, Status

    Refusal = Callable[[str, Status], ToolError]


class CommandQueue(ABC):
    """Turns these methods into commands; each kind of queue carries a command out in one step."""

    def renew(self, claim: Claim) -> bool:
        """Let the lease begin anew; False if the claim is lost: another Builder has it, or the request is over."""
        return self._act("renew", claim)

    def note(self, claim: Claim, step: str, text: str = "") -> bool:
        """Write an event into the history; False as for `renew`."""
        return self._act("note", claim, step=cut(step), text=cut(text))

    def hold(self, claim: Claim, text: str) -> bool:
        """Leave it to a person: it stays `building`, without a lease. False as for `renew`."""
        return self._act("hold", claim, text=cut(text))

    def give_back(self, claim: Claim, text: str) -> bool:
        """Return it to the queue for another Builder. False as for `renew`."""
        return self._act("give_back", claim, text=cut(text))

    def finish(self, claim: Claim, made: Made) -> bool:
        """Mark it as ready and release every experiment that waits for it, once. False as for `renew`."""
        return self._act("finish", claim, **self._describe(claim, made))

    def fail(self, claim: Claim, error: str) -> bool:
        """Mark it as failed, with the reason. False as for `renew`."""
        return self._act("fail", claim, error=cut(error))

    def cancel(self, request_id: str, reason: str) -> Filed:
        """Cancel it; if others ask for the same, the oldest of them is built instead."""
        return self._decide("cancel", request_id, is_over, reason=cut(reason))

    def retry(self, request_id: str) -> Filed:
        """Have one that failed, or was cancelled, built again, with those that failed with it."""
        return self._decide("retry", request_id, cannot_be_retried)

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Replace what the operator adds to it."""
        return self._decide("allow", request_id, is_over, allowance=write_allowance(allowance))

    @abstractmethod
    def _act(self, command: str, claim: Claim, **given: object) -> bool:
        """Carry out a command of the Builder that holds the claim; False if the claim is lost."""

    @abstractmethod
    def _decide(self, command: str, request_id: str, refusal: Refusal, **given: object) -> Filed:
        """Carry out a decision; raises NOT_FOUND, or the `refusal` where the status does not permit it."""

    @abstractmethod
    def _describe(self, claim: Claim, made: Made) -> dict[str, object]:
        """What `finish` stores about the tool that was made."""
