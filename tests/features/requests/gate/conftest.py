"""What the tests of the gate share: a request to prove candidates for, an honest candidate, and a trial to prove them in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tool_requests import request_of
from toolcrib import Crib
from toolcrib.features.requests.candidate import Candidate
from toolcrib.features.requests.gate import Judgement, OpenTrial
from toolcrib.features.requests.gate.judge import judge
from toolcrib.model.toolrequest import Allowance, ToolRequest

TEXT = {"name": "text", "type": "string", "description": "What to shout", "required": True}
TIMES = {"name": "times", "type": "integer", "description": "How often", "default": 2}
WANTED: dict[str, object] = {
    "id": "req_20240115_001",
    "name": "text_shouter",
    "description": "Shouts a text",
    "inputs": [TEXT, TIMES],
    "outputs": [
        {"name": "loud", "type": "string"},
        {"name": "letters", "type": "integer"},
        {"name": "first", "type": "string | null"},
    ],
    "example_usage": 'from tools.text_shouter import shout\n\nprint(shout(text="Ahoy").loud)\n',
}
HONEST = '''
def shout(text: str, times: int = 2) -> dict:
    """Shout a text."""
    loud = " ".join([text.upper()] * min(max(times, 0), 10))
    return {"loud": loud, "letters": len(text), "first": text[:1] or None}
'''


@pytest.fixture(scope="session")
def gate_crib(empty_home: Path) -> Iterator[Crib]:
    """The crib in whose sandbox candidates are tried."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(empty_home)}
    with Crib(environment=environment, sandbox={"memory_mb": 256}) as crib:
        yield crib


@pytest.fixture
def trial(gate_crib: Crib) -> OpenTrial:
    """Opens real trials."""
    return gate_crib._requests.trials


@pytest.fixture(scope="session")
def wanted() -> Callable[..., ToolRequest]:
    """A request: that for `shout`, with what a test says otherwise."""

    def make(**fields: object) -> ToolRequest:
        return request_of({**WANTED, **fields})

    return make


@pytest.fixture(scope="session")
def few(wanted: Callable[..., ToolRequest]) -> Callable[..., ToolRequest]:
    """A request with one input of two values, so that few calls are made."""

    def make(**fields: object) -> ToolRequest:
        loudly = {"name": "loudly", "type": "boolean", "description": "Whether to shout", "default": False}
        return wanted(inputs=[loudly], example_usage="from tools.text_shouter import shout\n\nshout()\n", **fields)

    return make


@pytest.fixture(scope="session")
def template() -> ToolRequest:
    """The request that the document about requests shows."""
    fixtures = Path(__file__).parents[3] / "seeds" / "fixtures" / "requests"
    return request_of((fixtures / "full_template.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def honest() -> str:
    """The code of a `shout` that is what was asked for."""
    return HONEST


@pytest.fixture(scope="session")
def candidate() -> Callable[..., Candidate]:
    """What a maker made for a request: one text, or files by their names."""

    def make(request: ToolRequest, code: str | Mapping[str, str | bytes]) -> Candidate:
        files = {f"{request.name}.py": code} if isinstance(code, str) else dict(code)
        content = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
        return Candidate(name=request.name, entry=f"{request.name}.py", files=content, digest="")

    return make


@pytest.fixture
def prove(
    gate_crib: Crib, trial: OpenTrial, candidate: Callable[..., Candidate], wanted: Callable[..., ToolRequest]
) -> Callable[..., Judgement]:
    """Have the gate judge some code for a request, which is that for `shout` unless another is given."""

    def run(
        code: str | Mapping[str, str | bytes],
        request: ToolRequest | None = None,
        *,
        allowance: Allowance = Allowance(),  # noqa: B008 - it is frozen
        seconds: float = 10,
        deadline: float = 60,
        trial: OpenTrial = trial,
        say: Callable[[str], None] = lambda text: None,
    ) -> Judgement:
        request = request or wanted()
        return gate_crib.run_sync(
            judge(
                candidate(request, code),
                request,
                trial,
                allowance=allowance,
                seconds_per_call=seconds,
                deadline=time.monotonic() + deadline,
                say=say,
            )
        )

    return run
