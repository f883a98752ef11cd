"""The only owner of child processes: a launcher, a supervisor for each call, a worker that runs untrusted code.

    host ── control socket ──▶ launcher ── fork ──▶ supervisor ── fork ──▶ worker and its descendants
      └──────────── socket of the call, pipes, channel ─────┘

In the host: `host` is the entry, over `jobs` (what runs, and its policy), `launchers` and `attempt` (one call); `probe` finds out
what this machine guarantees; `interpreters` and `environments` find and create other Pythons.

In `child`, which starts without the rest of Toolcrib and imports only the standard library, itself and `system`: `launcher`; `supervisor`
over `resource_limits` and `protected_paths`; `worker` with its `confinement` over `isolation` and `seccomp`, and what it runs
(`python_file`, `handler_context`, `script_channel`); `notifications`, `observer` and `broker` for system calls that the
supervisor answers; and `escape_attempts`, which the probe runs. Both sides use `system`, for system calls and signals.
"""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_words, setting

GUARANTEES = ("fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env")
# What holds unless the operator says otherwise in [sandbox].
REQUIRE = ("env", "time", "reap", "fs", "net", "priv")
JOBS = 8
QUEUE = 1_000
MEMORY_MB = 1_024
PROCESSES = 64
DISK_MB = 256


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
