"""The same tool through the frameworks that agents use today; they live in an environment of their own (make bench-peers)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from run import show

HERE = Path(__file__).parent
PYTHON = HERE / ".envs" / "peers" / "bin" / "python"

# How much of a peer's time a call through Toolcrib may take.
LIMITS = {
    "openai-agents on_invoke_tool": 0.8,
    "pydantic-ai ToolManager": 1 / 5,
    "FastMCP tool.run": 1 / 30,
    "LangChain ainvoke": 1 / 40,
}


async def run() -> bool:
    if not PYTHON.exists():
        print("\nPeers: not installed here; `make bench-peers` installs them in an environment of their own")
        return True
    child = subprocess.run([PYTHON, HERE / "peers_child.py"], check=True, capture_output=True, text=True)
    measured = json.loads(child.stdout.splitlines()[-1])
    seconds: dict[str, float] = measured["seconds"]
    rows = []
    for name, peer in seconds.items():
        ours = seconds["toolcrib, async" if name.endswith(", async") else "toolcrib"]
        rows.append((name, peer, ours / peer, LIMITS.get(name)))
    kept = show("The same add(a, b), in one process: our share of the peer's time", rows)
    for name, problem in measured["problems"].items():
        print(f"  {name}: could not be measured: {problem}")
    return kept and not measured["problems"]
