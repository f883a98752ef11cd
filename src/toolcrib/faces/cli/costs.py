"""`crib costs`: what the calls of a project cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.printing import say, say_json, say_table

if TYPE_CHECKING:
    from toolcrib.crib import Crib


def say_costs(crib: Crib, *, as_json: bool) -> ExitCode:
    """`crib costs`."""
    sums = crib.costs()
    if as_json:
        say_json([asdict(total) for total in sums])
    elif sums:
        rows = [(total.tool, str(total.calls), f"{total.amount:g}", total.currency) for total in sums]
        say_table(("tool", "calls", "amount", "currency"), rows)
    else:
        say("no call of this project had a price")
    return ExitCode.DONE
