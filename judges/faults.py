"""Real faults around real processes: a full disk while something is published, no free descriptors, a clock that is set.

`python judges/faults.py`: each fault is skipped, and said to be, where the machine cannot make it (namespaces, faketime).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, closing, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
CRIB = (sys.executable, "-m", "toolcrib")
INSIDE = "--inside"
DISK = 6_000_000
DESCRIPTORS = 400
HOUR = 3600
SECONDS = 60
# How a command that met the full disk explains itself; the last two, until the lease of a Builder that could not write expired.
REASONS = ("disk is full", "the disk reports an error", "another Builder has it", "cancel it or wait for it")
# What `crib publish` says if an earlier attempt failed only after the package was in its place.
DONE = "with the same content"


def run(project: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a project."""
    command, environment = [*CRIB, *words, "-C", str(project)], {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)


def make_project(folder: Path) -> Path:
    """A project with a tool, and a request that waits for a person."""
    shutil.copytree(ROOT / "examples" / "words", folder)
    with (folder / "toolcrib.toml").open("a", encoding="utf-8") as settings:
        settings.write('\n[builder]\nmaker = "person"\n')
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# A disk that becomes full.


def judge_full_disk() -> list[str]:
    """Publish, build and store on a disk with less and less room, each until it succeeds."""
    enter = ["unshare", "--mount", *(() if os.getuid() == 0 else ("--user", "--map-root-user"))]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        print("skipped: a full disk, because this machine has no mount namespaces")
        return []
    done = subprocess.run([*enter, sys.executable, __file__, INSIDE], timeout=10 * SECONDS, check=False)
    return [] if done.returncode == 0 else ["a full disk: see above"]


def fill_disk() -> list[str]:
    """What goes wrong on a small disk, which only this process and its children see."""
    problems: list[str] = []
    place = Path(tempfile.mkdtemp())
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)], check=True)
    project = make_project(place / "project")
    run(project, "bundle", "new", "notes")
    document = json.loads((ROOT / "examples" / "http" / "weather.json").read_text("utf-8"))
    file = Path(tempfile.mkdtemp()) / "weather.json"
    file.write_text(json.dumps({**document, "description": "x" * 30_000}))
    commands: dict[str, tuple[str, ...]] = {
        "publish": ("publish", "count_words", "--to", str(place / "depot")),
        "bundle put": ("bundle", "put", "notes", str(file)),
        "request": ("request", "new", str(ROOT / "examples" / "requests" / "slug_maker.yaml")),
        "deliver": ("request", "deliver", "slug_maker", str(ROOT / "examples" / "requests" / "made")),
        "pull": ("pull", "count_words", "--from", str(place / "depot"), "--replace"),
    }
    for name, words in commands.items():
        problems += [f"{name}: {problem}" for problem in squeeze(place, project, words)]
    return problems


def squeeze(place: Path, project: Path, words: tuple[str, ...]) -> Iterator[str]:
    """Repeat a command with more and more free room until it succeeds."""
    filler, until = place / "filler", time.monotonic() + 3 * SECONDS
    for refusals, room in enumerate((0, 1, 2, 4, 8, 16, 32, 64, 128, 256, *[1024] * 60)):  # pages
        if time.monotonic() > until:
            break
        filler.unlink(missing_ok=True)
        free = shutil.disk_usage(place).free
        with filler.open("wb") as file, suppress(OSError):
            for _ in range(max(0, free // 4096 - room)):
                file.write(b"\0" * 4096)
        done = run(project, *words)
        said = done.stdout + done.stderr
        if "Traceback" in said:
            yield f"with {room} free pages: {said[-300:]}"
        filler.unlink()
        check = run(project, "check")
        if "Traceback" in check.stderr or "broken" in check.stdout:
            yield f"after {room} free pages: {check.stdout[-300:]}{check.stderr[-300:]}"
        if done.returncode == 0 or DONE in said:
            if not refusals:
                yield "it succeeded on a full disk"
            left = [path for path in contents(place) if "/.tmp" in path or path.endswith(".tmp")]
            if left:
                yield f"temporary files are left: {left[:3]}"
            return
        if not any(word in said for word in REASONS):
            yield f"with {room} free pages it does not say why: {said[-300:]}"
    yield f"it never succeeded: {said[-300:]}"


# A process without free descriptors.


def judge_descriptors() -> list[str]:
    """Open more connections than the server has descriptors; afterwards everything works as before."""
    problems: list[str] = []
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        project = make_project(Path(folder) / "project")
        port, process = stack.enter_context(serve(project, descriptors=min(hard, DESCRIPTORS)))
        if call(port) != HTTPStatus.OK:
            problems.append("the server does not answer before anything is wrong")
        crowd = []
        for _ in range(2 * DESCRIPTORS):
            with suppress(OSError):
                crowd.append(socket.create_connection(("127.0.0.1", port), timeout=2))
        answers = {call(port) for _ in range(5)}
        if not answers <= {200, 429, 503, None}:
            problems.append(f"while there is no descriptor: {answers}")
        for each in crowd:
            each.close()
        until = time.monotonic() + SECONDS
        while call(port) != HTTPStatus.OK and time.monotonic() < until:
            time.sleep(0.1)
        if call(port) != HTTPStatus.OK:
            problems.append("the server does not recover")
        open_now = len([*Path(f"/proc/{process.pid}/fd").iterdir()])
        if open_now > DESCRIPTORS // 2:
            problems.append(f"{open_now} descriptors are still open")
    return [f"no descriptors: {problem}" for problem in problems]


def call(port: int) -> int | None:
    """The status of a call of a tool; None if the server did not answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/call/count_words",
        data=b'{"text": "a b a"}',
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - as above
            return int(response.status)
    except urllib.error.HTTPError as problem:
        return problem.code
    except OSError:
        return None


@contextmanager
def serve(project: Path, descriptors: int) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run a server with so many descriptors; its port and process."""
    command = ["prlimit", f"--nofile={descriptors}:{descriptors}", *CRIB, "serve", "-C", str(project), "--port", "0"]
    log = (project / "server.log").open("w")
    with closing(log), subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            address = next(line for line in process.stdout or () if "http://" in line)
            yield int(address.strip().rpartition(":")[2]), process
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


# A clock that is set.

ALLOWED = 2
LIMITED = """
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Answer twice a minute"
__limits__ = {"maxCallsPerMinute": ALLOWED}


def main() -> str:
    return "here"
""".replace("ALLOWED", str(ALLOWED))


def judge_clock() -> list[str]:
    """Set the clock of a process back and forth between two commands: limits hold, nothing expires early, nothing is lost."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        print("skipped: a clock that is set, because faketime is missing (apt-get install faketime)")
        return []
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder) / "project")
        tool = project / ".ai" / "tools" / "text" / "limited.py"
        tool.parent.mkdir(parents=True)
        tool.write_text(LIMITED)

        def at(offset: int, *words: str) -> subprocess.CompletedProcess[str]:
            clock = {"LD_PRELOAD": str(library), "FAKETIME": f"{offset:+d}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            return run(project, *words, **clock)

        codes = [at(offset, "call", "limited") for offset in (0, HOUR, -HOUR, 24 * HOUR)]
        allowed = sum(done.returncode == 0 for done in codes)
        if allowed != ALLOWED:
            problems.append(f"{allowed} of 4 calls ran where {ALLOWED} a minute are allowed: {codes[-1].stderr[-300:]}")
        run(project, "bundle", "new", "notes")
        at(-24 * HOUR, "bundle", "delete", "notes")
        for offset in (0, 24 * HOUR * 5, -HOUR):
            done = at(offset, "bundle", "list")
            if done.returncode or "Traceback" in done.stderr:
                problems.append(f"a list {offset} s away: {done.stderr[-300:]}")
    return [f"a clock that is set: {problem}" for problem in problems]


JUDGES: tuple[Callable[[], list[str]], ...] = (judge_full_disk, judge_descriptors, judge_clock)


def main() -> int:
    """Make every fault; gives how many things went wrong."""
    problems = fill_disk() if INSIDE in sys.argv else [problem for judge in JUDGES for problem in judge()]
    for problem in problems:
        print(problem)
    return min(len(problems), 100)


if __name__ == "__main__":
    sys.exit(main())
