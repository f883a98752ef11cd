"""`crib request allow ID`: what the operator adds to a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode, WrongUseError
from toolcrib.faces.cli.printing import on_one_line, say
from toolcrib.faces.cli.requesting import meant_by, read_file, spell_allowance
from toolcrib.model.toolrequest import Allowance
from toolcrib.pure.capabilities import is_capability
from toolcrib.pure.requests.proofs import HOST_CURE, is_host_pattern

if TYPE_CHECKING:
    from toolcrib.faces.cli.opening import OpenCrib
    from toolcrib.model.toolrequest import RecordedAnswer


def allow_request(
    crib: OpenCrib,
    word: str,
    capabilities: tuple[str, ...],
    hosts: tuple[str, ...],
    answers: str | None,
    *,
    unproved: bool,
    nothing: bool,
) -> ExitCode:
    """Add it, and say what the request has now."""
    is_something = bool(capabilities or hosts or unproved or answers is not None)
    if is_something == nothing:
        options = "--capability, --host, --answers or --unproved"
        raise WrongUseError(f"say what it is allowed: {options}; or take all of that back: --nothing")
    for name in capabilities:
        if not is_capability(name):
            raise WrongUseError(f"--capability: {name!r:.80} is none; write a dotted name, such as net.http")
    for host in hosts:
        if not is_host_pattern(host):
            raise WrongUseError(f"--host: {host!r:.80} is none; {HOST_CURE}")
    allowance = Allowance(
        capabilities=frozenset(capabilities), hosts=hosts, answers=_answers(answers), unproved=unproved
    )
    filed = crib.requests.allow(meant_by(crib, word), allowance)
    say(on_one_line(f"{filed.id} is allowed {spell_allowance(allowance) or 'nothing besides what it says'}"))
    return ExitCode.DONE


def _answers(file: str | None) -> tuple[RecordedAnswer, ...]:
    if file is None:
        return ()
    from toolcrib.pure.requests import read_answers

    return read_answers(read_file(file), place=file)
