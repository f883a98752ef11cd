"""What the operator adds to a request, written down: as plain values, of which nothing goes unread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import Allowance
from toolcrib.pure.requests.answers import read_answer_list
from toolcrib.pure.requests.fields import Fields
from toolcrib.pure.requests.layout import ROOT
from toolcrib.pure.requests.proofs import read_capabilities, read_hosts
from toolcrib.pure.requests.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = ("capabilities", "hosts", "answers", "unproved")
KNOWN = f"known are {', '.join(KEYS)}"


def read_allowance(document: Mapping[str, object], place: str = "allowance") -> Allowance:
    """What the document allows; everything that is wrong with it is told in one VALIDATION.

    The lists are written as in a request. What an operator wrote in vain is refused, as nobody would read a warning.
    """
    given = {name: value for name, value in document.items() if value is not None}
    # The values come without their text, so that no line of it is known but the first.
    root = Fields(Report(place, lambda _: 1), given, (ROOT,))
    for name in document.keys() - given.keys():
        root.refuse(name, "is empty; write a value, or leave it out")
    for name, question in root.strangers(KEYS):
        root.refuse(name, f"can be allowed to nobody; {question or KNOWN}")
    allowance = Allowance(
        capabilities=read_capabilities(root),
        hosts=read_hosts(root) or (),
        answers=read_answer_list(root),
        unproved=root.switch("unproved") or False,
    )
    root.report.finish(strict=True)
    return allowance
