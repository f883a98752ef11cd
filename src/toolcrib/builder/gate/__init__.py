"""The gate: what a request asks for as a contract, and whether a candidate keeps it.

It sees what a candidate does in the calls that it makes, and no others. One that waits for a date, for a value that is never
tried, or for luck passes; so does one that knows the examples by heart, or that finds out that it is watched: by the filters
of its process, by the variables that name the authority of recorded servers, or by where it lies. What such a one does later
the walls of every call still bound: it gets no capability that was not asked for and granted.
"""

from __future__ import annotations

from toolcrib.builder.gate.allowing import find_unprovable, refuse_beyond
from toolcrib.builder.gate.contract import derive_contract
from toolcrib.builder.gate.judging import judge
from toolcrib.builder.gate.nouns import Check, Complaint, Contract, Judgement, Sample
from toolcrib.builder.gate.writing import write_contract_tests

__all__ = [
    "Check",
    "Complaint",
    "Contract",
    "Judgement",
    "Sample",
    "derive_contract",
    "find_unprovable",
    "judge",
    "refuse_beyond",
    "write_contract_tests",
]
