"""What SQLite and the rows of a statement may take of the host's memory; in a process of its own, because SQLite takes such a limit for good."""

import json
import subprocess
import sys
from pathlib import Path

from sql_shop import make_shop

from warm_python import WarmPython

PROGRAM = """
import json, sys
from toolcrib import Crib

statements = json.load(sys.stdin)
with Crib(".", sql_tools={"memory_mb": 24}) as crib:
    crib.bundles.put_bundle(bundle := "018faf50-b7b6-7a01-9a05-a22a6e0af101", {"slug": "shop", "displayName": "Shop", "isEnabled": True})
    for number, statement in enumerate(statements):
        document = {
            "schemaVersion": "toolcrib-1", "displayName": "A statement", "description": "Runs a statement", "type": "sql", "isEnabled": True,
            "argSchema": {"type": "object"}, "outputSchema": {},
            "impl": {"database": "shop.sqlite", "statement": statement, "returns": "value", "timeoutMs": 60_000},
        }
        crib.bundles.put_tool(bundle, f"statement{number}", "v1", document)
        result = crib.call_sync(f"statement{number}")
        print(json.dumps([result.value, str(result.error.kind) if result.error else "", result.error.message if result.error else ""]))
"""
REFUSAL = "the statement takes more memory than SQLite may have here; ask for less, or raise sql_tools.memory_mb"


def doubled(way: str) -> str:
    """A statement of a few lines, of which SQLite makes as many parts as 2 to the power of 30 before it runs anything."""
    parts = ["a0 AS NOT MATERIALIZED (SELECT 1 AS x)"]
    parts += [f"a{n} AS NOT MATERIALIZED ({way.format(n - 1)})" for n in range(1, 30)]
    return f"WITH {', '.join(parts)} SELECT x FROM a29"


def test_a_statement_that_takes_too_much_memory_is_refused_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.toml").write_text("")
    make_shop(tmp_path / "shop.sqlite")
    held = ", ".join(f"hex(zeroblob({490_000 - number}))" for number in range(100))
    hungry = [
        doubled("SELECT p.x FROM a{0} p, a{0} q"),
        doubled("SELECT x FROM a{0} UNION ALL SELECT x FROM a{0}"),
        doubled("SELECT (SELECT x FROM a{0}) + (SELECT x FROM a{0}) AS x"),
        f"SELECT max({held}) = 1 AS x",
    ]
    statements = [each for statement in hungry for each in (statement, "SELECT count(*) FROM customers")]
    done = WarmPython(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ).communicate(json.dumps(statements), timeout=60)
    results = [json.loads(line) for line in done[0].splitlines()]
    assert results == [[None, "LIMIT_EXCEEDED", REFUSAL], [4, "", ""]] * len(hungry)
