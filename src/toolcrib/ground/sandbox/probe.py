"""What the walls are worth here: found out by jobs that try what is forbidden, and kept until the system is another."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from toolcrib.ground.sandbox.jobs import Ended

    # As Sandbox.run, of a sandbox that requires nothing.
    RunJob = Callable[..., Awaitable[Ended]]

PLAIN, NETWORK, PROGRAM = PROFILES = ("plain", "network", "program")


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was seen to hold for one profile of jobs, and the layers that stood while it was tried."""

    guarantees: frozenset[str]
    layers: tuple[str, ...]


async def probe(run_job: RunJob) -> dict[str, Report]:
    """Try everything that is forbidden; `run_job` is `Sandbox.run` without any requirement."""
    from toolcrib.ground.sandbox.trials import try_everything

    found = await try_everything(run_job, PROFILES)
    return {profile: Report(guarantees=kept, layers=layers) for profile, (kept, layers) in found.items()}


def load(path: Path) -> dict[str, Report] | None:
    """What was found before, on this system as it is now; None if nothing that can be relied on is there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            return None
        try:
            document = json.loads(file.read())
            if document["of"] != _circumstances():
                return None
            return {profile: _read_report(document["reports"][profile]) for profile in PROFILES}
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


def store(path: Path, reports: Mapping[str, Report]) -> None:
    """Keep what was found until the system is another; OSError if it cannot be kept."""
    document = {
        "of": _circumstances(),
        "reports": {
            profile: {"guarantees": sorted(report.guarantees), "layers": list(report.layers)}
            for profile, report in reports.items()
        },
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        fresh.replace(path)
    except OSError:
        fresh.unlink()
        raise


def _read_report(document: object) -> Report:
    if not isinstance(document, dict):
        raise ValueError("a report is a mapping")
    guarantees, layers = document["guarantees"], document["layers"]
    if not all(isinstance(name, str) for name in (*guarantees, *layers)):
        raise ValueError("names are texts")
    return Report(guarantees=frozenset(guarantees), layers=tuple(layers))


def _circumstances() -> list[str]:
    """What the findings depend on: they are worth nothing under another kernel, user, interpreter or sandbox."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        boot = ""
    with os.scandir(Path(__file__).parent) as entries:
        code = sorted(f"{entry.name} {entry.stat().st_mtime_ns}" for entry in entries if entry.name.endswith(".py"))
    system = os.uname()
    who = f"{os.geteuid()}:{os.getegid()}"
    return [boot, system.release, system.version, who, os.path.realpath(sys.executable), sys.version, *code]
