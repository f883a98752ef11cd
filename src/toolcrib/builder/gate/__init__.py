"""The gate: what a request asks for as a contract, and whether a candidate keeps it."""

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
