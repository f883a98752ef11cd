"""What a candidate did, held against what its request and the operator allow; what it was kept from counts as done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.builder.gate.nouns import Check, complain
from toolcrib.ground.egress import parse_hosts
from toolcrib.ground.sandbox.observer import MORE
from toolcrib.model.errors import ToolError
from toolcrib.pure.url import parse_url
from toolcrib.runners.effects import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.builder.trial import TrialTerms
    from toolcrib.model.tool import Tool
    from toolcrib.runners.effects import Deed

CONNECT = "connect"
ACTS = {"read": "reads", "write": "writes to", CONNECT: "connects to", "start": "starts", "call": "calls the tool"}
MOST = 10


def check_effects(tool: Tool, terms: TrialTerms, seen: Iterable[tuple[str, Iterable[Deed]]]) -> list[Complaint]:
    """One complaint for each deed that nobody allowed, with what was being done at the time."""
    first: dict[tuple[str, str], str] = {}
    for about, deeds in seen:
        for deed in find_undeclared(tool, terms, deeds):
            first.setdefault((deed.act, deed.what), _describe(about, deed, terms))
    texts = list(first.values())
    if len(texts) > MOST:
        texts[MOST:] = [f"… and {len(texts) - MOST} more such deeds"]
    return [complain(Check.EFFECTS, text) for text in texts]


def find_undeclared(tool: Tool, terms: TrialTerms, deeds: Iterable[Deed]) -> Iterator[Deed]:
    """The deeds that neither the request nor the operator allows."""
    comparison = Comparison.of(tool, deeds)
    yield from comparison.undeclared
    yield from (deed for deed in comparison.declared if deed.act == CONNECT and _leads_astray(deed, terms))


def uses_network(deeds: Iterable[Deed]) -> bool:
    """Whether a connection was made, or tried."""
    return any(deed.act == CONNECT for deed in deeds)


def _leads_astray(deed: Deed, terms: TrialTerms) -> bool:
    """Whether a connection was refused for where it leads: past the hosts, or past what was recorded."""
    if not deed.denied or (not terms.answers and terms.hosts is None):
        return False
    try:
        url = parse_url(f"http://{deed.what}/")
        if terms.answers:
            return url.host not in {parse_url(answer.url).host for answer in terms.answers}
        parse_hosts(terms.hosts or ()).check(url)
    except ToolError:
        return True
    return False


def _describe(about: str, deed: Deed, terms: TrialTerms) -> str:
    if deed.act == MORE:
        return f"{about}: it did more than can be written down; do less"
    kept = " (it was kept from that)" if deed.denied else ""
    return f"{about}: it {ACTS.get(deed.act, deed.act)} {deed.what}{kept}; {_cure(deed, terms)}"


def _cure(deed: Deed, terms: TrialTerms) -> str:
    if deed.act == CONNECT and deed.capability and any(name.startswith("net.") for name in terms.requires):
        return "remove it, or have that host among the hosts and recorded answers of the request"
    if deed.capability:
        return f"remove it, or have {deed.capability} among the capabilities of the request"
    return "remove it: no capability opens that"
