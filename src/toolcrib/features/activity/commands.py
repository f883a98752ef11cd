"""`crib stats`: numbers, durations, errors and costs of calls, and the usage of limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.features.activity.statistics import sum_costs, sum_latencies
from toolcrib.model.call import CALL
from toolcrib.model.limits import spell_amount
from toolcrib.toolkit.cli import ExitCode, count, say, say_json
from toolcrib.toolkit.cli.console_tables import say_table
from toolcrib.toolkit.cli.group import example, json_option, pass_opener, project_option
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcrib.features.activity.statistics import CostSum, Latency
    from toolcrib.model.limits import Usage
    from toolcrib.model.protocols import Journal
    from toolcrib.toolkit.cli.group import Opener

BAR = 10


class StatisticsCrib(ProjectCrib, Protocol):
    """What this command uses of a crib."""

    @property
    def journal(self) -> Journal:
        """The journal of the project."""

    def usages(self) -> Sequence[Usage]:
        """The current usage of the rate limits of tools and the quotas of tokens."""


@click.command("stats", epilog=example("crib stats --json"))
@project_option
@json_option
@pass_opener
def stats(opener: Opener[StatisticsCrib], *, as_json: bool) -> int:
    """Show calls, times, errors, costs, and what is left of limits.

    Calls are those of the journal: by tool with the median, the 95th and the 99th percentile of their milliseconds, how many
    were over the tool's budget, and their price. Limits are rates of tools and quotas of tokens, for all processes together.
    """
    with opener.open_local() as crib:
        lines = list(crib.journal.read())
        usages = crib.usages()
        latencies, costs = sum_latencies(lines), sum_costs(lines)
        errors = _errors(lines)
    if as_json:
        say_json(
            {
                "tools": [asdict(each) for each in latencies],
                "costs": [asdict(each) for each in costs],
                "errors": errors,
                "limits": [{**asdict(usage), "left": usage.left} for usage in usages],
            }
        )
        return ExitCode.DONE
    _say_calls(latencies, costs)
    if errors:
        say("\n" + ", ".join(f"{kind} {number}" for kind, number in errors.items()))
    if usages:
        say("")
        say_table(("limit of", "used", "", "of", "left"), [_limit_row(usage) for usage in usages])
    return ExitCode.DONE


def _errors(lines: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """How many calls ended with each error, the most frequent first."""
    found = Counter(str(line["error"]) for line in lines if line.get("event") == CALL and "error" in line)
    return dict(found.most_common())


def _say_calls(latencies: Sequence[Latency], costs: Sequence[CostSum]) -> None:
    if not latencies:
        say("no tool of this project was called yet")
        return
    prices: dict[str, list[str]] = {}
    for total in costs:
        prices.setdefault(total.tool, []).append(f"{total.amount:g} {total.currency}")
    most = max(each.calls for each in latencies)
    columns = ("tool", "calls", "", "failed", "p50 ms", "p95 ms", "p99 ms", "over budget", "cost")
    say_table(columns, [_row(each, most, prices.get(each.tool, [])) for each in latencies])
    say(f"\n{count(sum(each.calls for each in latencies), 'call')} of {count(len(latencies), 'tool')}")


def _row(latency: Latency, most: int, prices: Sequence[str]) -> tuple[str, ...]:
    times = (f"{number:.1f}" for number in (latency.p50, latency.p95, latency.p99))
    counts = (str(latency.calls), bar(latency.calls, most), str(latency.failed))
    return (latency.tool, *counts, *times, str(latency.over_budget), ", ".join(prices))


def _limit_row(usage: Usage) -> tuple[str, ...]:
    limit = f"{spell_amount(usage.limit)} {usage.unit} per {usage.per}"
    subject = f"{usage.name} ({usage.subject})" if usage.name else usage.subject
    return subject, spell_amount(usage.used), bar(usage.used, usage.limit), limit, spell_amount(usage.left)


def bar(value: float, most: float) -> str:
    """A bar for the share of a whole, of characters that every terminal has."""
    full = round(BAR * min(1.0, value / most)) if most else 0
    return "#" * full + "." * (BAR - full)
