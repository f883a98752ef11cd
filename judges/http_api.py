"""Hold the HTTP API against its own description: schemathesis makes requests of it and checks every answer.

`python judges/http_api.py [EXAMPLES]`: how many requests to make of each kind, 10 unless told.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from toolcrib import Crib
from toolcrib.interfaces.http.app import make_app

EXAMPLES = 10
REFUSALS = ("400", "401", "403", "404", "409", "412", "413", "429")
# Fewer would mean that the description was not understood.
LEAST_REQUESTS = 1_000


@schemathesis.serializer("application/zip")
def write_archive(_context: schemathesis.SerializationContext, value: object) -> bytes:
    """The body of an import: bytes as they are; anything else is not an archive either."""
    if isinstance(value, bytes):
        return value
    return value.encode(errors="surrogatepass") if isinstance(value, str) else repr(value).encode()


def judge(root: Path, examples: int) -> tuple[int, list[str]]:
    """Judge the application by its description: how many requests were made, and what was wrong."""
    functions = {"echo": lambda _context, arguments: arguments}
    # A stream of events lasts nearly as long as an answer may take.
    with Crib(root, functions=functions, server={"hosts": ["testserver"], "total_seconds": 1}) as crib:
        bearer = {"Authorization": f"Bearer {crib.tokens.create('judge', ['read', 'invoke', 'manage'])[1]}"}
        config = SchemathesisConfig.from_dict(
            {
                "headers": bearer,
                "generation": {"max-examples": examples, "database": "none", "deterministic": True},
                "checks": {
                    # Our rules are finer than OpenAPI can say: what its schemas allow may still be refused with these.
                    "positive_data_acceptance": {"expected-statuses": ["2xx", "3xx", *REFUSALS]},
                    # A precondition is judged before the body is read.
                    "negative_data_rejection": {"expected-statuses": [*REFUSALS, "405", "406", "415", "422", "428"]},
                },
            }
        )
        app = make_app(crib, open_to_loopback=False)
        schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config, headers=bearer)
        return _collect(schema)


def _collect(schema: schemathesis.BaseSchema) -> tuple[int, list[str]]:
    made, problems = 0, []
    for event in from_schema(schema).execute():
        if isinstance(event, (events.NonFatalError, events.FatalError)):
            problems.append(repr(event))
        if isinstance(event, events.ScenarioFinished):
            made += len(event.recorder.cases)
            found = [check.failure_info for checks in event.recorder.checks.values() for check in checks]
            problems += [f"{one.failure}\n{one.code_sample}" for one in found if one is not None]
    return made, problems


def main() -> int:
    """Judge it in a project of its own."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    with tempfile.TemporaryDirectory() as folder:
        made, problems = judge(Path(folder), examples)
    print(f"{made} requests, {len(problems)} problems")
    print("\n\n".join(problems))
    return 1 if problems or made < LEAST_REQUESTS else 0


if __name__ == "__main__":
    sys.exit(main())
