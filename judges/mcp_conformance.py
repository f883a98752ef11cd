"""Run the official conformance suite of MCP against a server, and read in its journal that every fixture was called.

`python judges/mcp_conformance.py`: the suite is found in `.judges/mcp-conformance`. Several scenarios pass for tools that do not
exist, so the exit code of the suite alone proves little.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from toolcrib import Crib

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / ".judges/mcp-conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"
FIXTURES = ROOT / "tests" / "interfaces" / "mcp" / "everything.py"
REVISIONS = ("2025-11-25", "2026-07-28")
# Scenarios and checks that must have been made: the suite does not score some, and skips others where a server lacks what they are about.
DEMANDED = frozenset(
    {
        *("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"),
        *("server-session-lifecycle", "server-sse-polling", "dns-rebinding-protection"),
        *("sep-2575-server-sends-subscription-ack", "sep-2575-server-tags-subscription-id"),
        *("sep-2575-server-honors-notification-filter", "sep-2575-server-sends-tools-list-changed-on-subscription"),
        "sep-2575-server-sends-prompts-list-changed-on-subscription",
    }
)
EXTENSION = "tasks-"
# How a fixture ends that is meant to fail; all others succeed at least once.
FAILS = {
    "test_error_handling": "PERMANENT",
    "test_missing_capability": "CAPABILITY_MISSING",
    # The suite does not answer what these ask, so they are stopped with the server.
    "test_streaming_elicitation": "CANCELLED",
    "test_input_required_result_tampered_state": "CANCELLED",
    "test_input_required_result_capabilities": "CANCELLED",
}
# It is only looked at, and called without arguments by the scenario that takes the first tool of the list.
ONLY_LISTED = "json_schema_2020_12_tool"


def judge(project: Path) -> list[str]:
    """What is wrong."""
    with subprocess.Popen([sys.executable, FIXTURES, "0", project], stdout=subprocess.PIPE, text=True) as server:
        try:
            url = f"{server.stdout.readline().strip()}/mcp".replace("127.0.0.1", "localhost")
            seen: set[str] = set()
            wrong = [problem for revision in REVISIONS for problem in run_suite(url, revision, project, seen)]
            wrong += [f"the suite did not make {name}" for name in sorted(DEMANDED - seen)]
        finally:
            server.terminate()
            server.wait(30)
    return [*wrong, *unmet(project)]


def run_suite(url: str, revision: str, project: Path, seen: set[str]) -> list[str]:
    """Run one revision: its exit code, and the checks of every scenario that counts here; `seen` gathers the names of both."""
    out = project / f"out-{revision}"
    words = ["node", str(SUITE), "server", "--url", url, "--requirements", revision, "-o", str(out)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout[-3_000:])
    wrong = [f"{revision}: the suite ended with {done.returncode}"] if done.returncode else []
    for file in sorted(out.rglob("checks.json")):
        scenario = file.parent.name.removeprefix("server-").rpartition("-20")[0]
        checks = json.loads(file.read_text())
        seen.update((scenario, *(check["id"] for check in checks)))
        if not scenario.startswith(EXTENSION):
            wrong += [
                f"{revision}: {scenario}: {check['id']} is {check['status']}: {check.get('errorMessage', '')}"
                for check in checks
                if check["status"] not in {"SUCCESS", "INFO"}
            ]
    return wrong


def unmet(project: Path) -> list[str]:
    """The fixtures that were not called, or did not end as they are meant to."""
    ended: dict[str, set[str | None]] = {}
    with Crib(project, builtins={"enabled": False}) as crib:
        for line in crib.journal.read():
            if line["event"] == "call":
                name = str(line["tool"]).rpartition("/")[2].partition("@")[0].replace("-", "_")
                error = line.get("error")
                ended.setdefault(name, set()).add(None if error is None else str(error))
    names = json.loads(subprocess.check_output([sys.executable, FIXTURES, "--names"], text=True))
    return [
        f"{name} ended as {sorted(map(str, ended.get(name, {'not called'})))}, not as {FAILS.get(name)}"
        for name in names
        if name != ONLY_LISTED and FAILS.get(name) not in ended.get(name, set())
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        problems = judge(Path(folder))
    print("\n".join(problems) or "both revisions are kept, and every fixture was called")
    sys.exit(1 if problems else 0)
