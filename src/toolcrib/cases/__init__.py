"""Documents that run: the examples of a tool and its recorded cases, tried on a scripted client."""

from toolcrib.cases.bench import Bench
from toolcrib.cases.context import FakeContext
from toolcrib.cases.finding import find_cases
from toolcrib.cases.nouns import Case, CaseResult
from toolcrib.cases.reading import load_cases, read_cases
from toolcrib.cases.running import perform, run_cases, take_down_audit
from toolcrib.cases.verdicts import failing_examples, read_failing, remember

__all__ = [
    "Bench",
    "Case",
    "CaseResult",
    "FakeContext",
    "failing_examples",
    "find_cases",
    "load_cases",
    "perform",
    "read_cases",
    "read_failing",
    "remember",
    "run_cases",
    "take_down_audit",
]
