"""Script files: a call against a cold interpreter, what the walls cost, many files, and many calls at once."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from run import show
from toolcrib import Call, Crib
from toolcrib.infra.files.protected_files import ProtectedFolders
from toolcrib.infra.sandbox.host import Sandbox
from toolcrib.infra.sandbox.jobs import Program, SandboxPolicy, WorkspacePolicy, build_policy

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 12
IN_A_ROW = 4
MANY = 1_000
LIMIT_SECONDS = 2.0
CALLS = 200
JOBS = 8
SLEEP_SECONDS = 0.05

# What a script that talks to services, keeps records and prints tables imports, all of the standard library.
IMPORTS = (
    "import argparse, asyncio, concurrent.futures, csv, dataclasses, datetime, decimal, email.mime.text, http.server, json\n"
    "import logging.config, multiprocessing, sqlite3, ssl, statistics, subprocess, tempfile, unittest.mock, urllib.request\n"
    "import xml.etree.ElementTree, zipfile\n"
)
SHARE_OF_A_COLD_START = 1 / 15
CALL_SECONDS = 0.010
WALLS_SECONDS = 0.003
HEAD = """{imports}
__version__ = "1.0.0"
__tool_type__ = "script"
__executor_id__ = "python_runtime"
__category__ = "{category}"
__tool_description__ = "{description}"

"""
ANSWER = 'def main(number: int) -> int:\n    """Answer.\n\n    Args:\n        number: what to answer\n    """\n    return number\n'
WAIT = f'def main(number: int) -> list:\n    """Wait.\n\n    Args:\n        number: what to answer\n    """\n    began = time.monotonic()\n    time.sleep({SLEEP_SECONDS})\n    return [number, began]\n'


def write_script(folder: Path, name: str, body: str, imports: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(HEAD.format(imports=imports, category=folder.name, description=f"Run {name}") + body)
    return path


def seconds_of_process(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


async def seconds_of_call(crib: Crib, name: str, arguments: dict[str, object], expected: object) -> float:
    started = time.perf_counter()
    result = await crib.call(name, arguments)
    took = time.perf_counter() - started
    assert result.ok, result.error
    assert result.value == expected, result.value
    return took


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        kept = [await compare_starts(Path(folder) / "starts"), await load_many(Path(folder) / "many")]
        kept.append(await call_at_once(Path(folder) / "at_once"))
    return all(kept)


async def compare_starts(project: Path) -> bool:
    """A call through the warm process against a cold interpreter with the same imports; a program with and without walls."""
    tools = project / ".ai" / "tools" / "bench"
    write_script(tools, "give-back", ANSWER, IMPORTS)
    # Installed packages are compiled once; a variable that forbids that would have us measure the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in ("warm", "cold", "policy", "open")}
    folders = ProtectedFolders()
    sandbox = Sandbox(protected=lambda: folders)
    closed = build_policy((), WorkspacePolicy(workspace=project), (Path("/bin"), Path("/usr/bin")))
    async with Crib(project) as crib:
        await seconds_of_call(crib, "give-back", {"number": 1}, 1)
        # A few of each in turn: a cold start throws everything else out of the processor's caches.
        for turn in range(ROUNDS):
            for _ in range(IN_A_ROW):
                times["warm"].append(await seconds_of_call(crib, "give-back", {"number": turn}, turn))
            for _ in range(IN_A_ROW):
                command = [sys.executable, "-c", f"{IMPORTS}print({turn})"]
                times["cold"].append(seconds_of_process(command, environment))
            for _ in range(IN_A_ROW):
                times["policy"].append(await seconds_of_start(sandbox, closed))
                times["open"].append(await seconds_of_start(sandbox, SandboxPolicy(unconfined=True)))
    sandbox.close()
    warm, cold, policy, bare = (statistics.median(values) for values in times.values())
    return show(
        "Script files",
        [
            ("a cold interpreter with a file's imports", cold, 1.0, None),
            ("a sandboxed call of it, in cold starts", warm, warm / cold, SHARE_OF_A_COLD_START),
            ("the same, in units of the limit of 10 ms", warm, warm / CALL_SECONDS, 1),
            ("a program without walls", bare, None, None),
            ("the same program within walls", policy, None, None),
            ("what they add, in units of the limit of 3 ms", policy - bare, (policy - bare) / WALLS_SECONDS, 1),
        ],
    )


async def seconds_of_start(sandbox: Sandbox, policy: SandboxPolicy) -> float:
    """How long it takes to start a program that does nothing, and to see its end."""
    job = Program(argv=("/bin/true",), cwd=Path("/"), policy=policy)
    started = time.perf_counter()
    ended = await sandbox.run(job, deadline=time.monotonic() + 10)
    assert ended.exit_code == 0, ended
    return time.perf_counter() - started


async def load_many(project: Path) -> bool:
    """A thousand files: read at first, and read again after one edit."""
    for number in range(MANY):
        write_script(project / ".ai" / "tools" / f"group-{number % 20}", f"answer-{number}", ANSWER)
    edited = project / ".ai" / "tools" / "group-7" / "answer-7.py"
    async with Crib(project) as crib:
        # Files that were written a moment ago are read again at the next look, and these are meant to be old.
        await asyncio.sleep(0.1)
        load = measure(lambda: crib.find("answer-999"))
        quiet = statistics.median(measure(lambda: crib.find("answer-7")) for _ in range(100))
        edited.write_text(edited.read_text().replace("return number", "return -number"))
        again = measure(lambda: crib.find("answer-7"))
        result = await crib.call("answer-7", number=7)
        assert result.value == -7, result
    return show(
        f"{MANY:,} script files",
        [
            ("loaded, in units of the limit of 2 s", load, load / LIMIT_SECONDS, 1),
            ("found, nothing having changed", quiet, None, None),
            ("found after an edit, in loads", again, again / load, 0.2),
        ],
    )


def measure(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    assert work() is not None
    return time.perf_counter() - started


async def call_at_once(project: Path) -> bool:
    """Many calls of a script that waits, a few at a time: none is lost, each has its own answer, first come first served."""
    write_script(project / ".ai" / "tools" / "bench", "wait-a-moment", WAIT, "import time\n")
    async with Crib(project, sandbox={"jobs": JOBS}) as crib:
        await crib.call("wait-a-moment", number=-1)
        memory = peak_megabytes()
        started = time.perf_counter()
        results = await crib.call_all(
            Call(name="wait-a-moment", arguments={"number": number}) for number in range(CALLS)
        )
        took = time.perf_counter() - started
        memory = peak_megabytes() - memory
    values = [result.value for result in results if result.ok]
    lost = CALLS - len(values)
    crossed = sum(value[0] != number for number, value in enumerate(values)) if not lost else CALLS
    order = sorted(range(len(values)), key=lambda place: values[place][1])
    overtaken = max((abs(place - number) for place, number in enumerate(order)), default=CALLS)
    show(
        f"{CALLS} calls at once of a script that waits {SLEEP_SECONDS * 1000:g} ms, {JOBS} at a time",
        [("all of them, in units of waiting alone", took, took / (CALLS / JOBS * SLEEP_SECONDS), None)],
    )
    print(f"  lost {lost}, crossed {crossed}, furthest from its turn {overtaken}, memory {memory:+.0f} MB")
    return lost == crossed == 0 and overtaken <= 2 * JOBS


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000
