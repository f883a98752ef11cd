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

GUARANTEES = ("fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env")
# What holds unless the operator says otherwise in [sandbox].
REQUIRE = ("env", "time", "reap", "fs", "net", "priv")
JOBS = 8
QUEUE = 1_000
MEMORY_MB = 1_024
PROCESSES = 64
DISK_MB = 256
