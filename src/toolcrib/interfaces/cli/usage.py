"""`crib costs` and `crib latency`: what the calls of a project cost, and how long they took."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from toolcrib.toolkit.cli.console import ExitCode, say, say_json, say_table
from toolcrib.toolkit.cli.group import json_option, pass_opener, project_option

if TYPE_CHECKING:
    from toolcrib.core.journal_statistics import Latency
    from toolcrib.crib import Crib
    from toolcrib.toolkit.cli.opener import Opener


@click.command("costs")
@project_option
@json_option
@pass_opener
def costs(opener: Opener[Crib], *, as_json: bool) -> int:
    """Sum up what the calls of this project cost.

    By tool and currency, from the journal; a tool says what it costs in its metadata.
    """
    with opener.open_local() as crib:
        sums = crib.costs()
        if as_json:
            say_json([asdict(total) for total in sums])
        elif sums:
            rows = [(total.tool, str(total.calls), f"{total.amount:g}", total.currency) for total in sums]
            say_table(("tool", "calls", "amount", "currency"), rows)
        else:
            say("no call of this project had a price")
        return ExitCode.DONE


@click.command("latency")
@project_option
@json_option
@pass_opener
def latency(opener: Opener[Crib], *, as_json: bool) -> int:
    """Show how long the calls of this project took.

    By tool, from the journal: median, 95th and 99th percentile, and how many were over the tool's budget.
    """
    with opener.open_local() as crib:
        found = crib.latencies()
        if as_json:
            say_json([asdict(each) for each in found])
        elif found:
            columns = ("tool", "calls", "failed", "p50 ms", "p95 ms", "p99 ms", "over budget")
            say_table(columns, [_row(each) for each in found])
        else:
            say("no tool of this project was called yet")
        return ExitCode.DONE


def _row(latency: Latency) -> tuple[str, ...]:
    counts = (str(latency.calls), str(latency.failed))
    times = (f"{number:.1f}" for number in (latency.p50, latency.p95, latency.p99))
    return (latency.tool, *counts, *times, str(latency.over_budget))
