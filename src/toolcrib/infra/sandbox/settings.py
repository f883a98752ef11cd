"""The table [sandbox] of the settings."""

from __future__ import annotations

from toolcrib.infra.sandbox import DISK_MB, GUARANTEES, JOBS, MEMORY_MB, PROCESSES, QUEUE, REQUIRE
from toolcrib.infra.settings import Table, read_positive, read_words, setting


def _read_guarantees(name: str, value: object) -> tuple[str, ...]:
    words = read_words(name, value)
    if unknown := sorted(set(words) - set(GUARANTEES)):
        raise ValueError(f"{name}: unknown guarantee {unknown[0]!r}; known are {', '.join(GUARANTEES)}")
    return words


class SandboxSettings(Table, name="sandbox"):
    """What the sandbox must guarantee, and how much the processes of tools may use."""

    require: tuple[str, ...] = setting(
        default=REQUIRE,
        read=_read_guarantees,
        summary="what the sandbox must guarantee for files of tools to run at all",
    )
    jobs: int = setting(
        default=JOBS, read=read_positive, opens=False, summary="how many processes of tools may run at once"
    )
    queue: int = setting(
        default=QUEUE,
        read=read_positive,
        opens=False,
        summary="how many more calls may wait for one of those places before they are refused",
    )
    memory_mb: int = setting(
        default=MEMORY_MB, read=read_positive, opens=False, summary="how much memory the processes of one call may use"
    )
    processes: int = setting(
        default=PROCESSES, read=read_positive, opens=False, summary="how many processes one call may have"
    )
    disk_mb: int = setting(
        default=DISK_MB,
        read=read_positive,
        opens=False,
        summary="how much one call may keep in its scratch folder, and how large a file it may write",
    )
