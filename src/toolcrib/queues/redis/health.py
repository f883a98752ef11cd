"""What the operator of a server should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from toolcrib.queues.redis.link import Link


def look_after(link: Link) -> list[str]:
    """Why requests on this server could be lost, each with its cure."""
    facts = {**_read(link, "persistence"), **_read(link, "memory")}
    remarks = []
    if facts.get("aof_enabled") == "0":
        remarks.append(
            f"the Redis server at {link.place} keeps no append-only file: if it falls, requests are lost; set appendonly yes"
        )
    elif facts.get("aof_last_write_status", "ok") != "ok":
        remarks.append(
            f"the Redis server at {link.place} cannot write its append-only file; look at its disk and its log"
        )
    policy = facts.get("maxmemory_policy", "")
    if facts.get("maxmemory", "0") != "0" and policy.startswith("allkeys"):
        remarks.append(
            f"the Redis server at {link.place} drops any key when its memory is full ({policy}), requests too; "
            "set maxmemory-policy noeviction"
        )
    return remarks


def _read(link: Link, section: str) -> dict[str, str]:
    try:
        answer = link.ask("INFO", section)
    except ToolError as problem:
        if problem.retryable:
            raise
        return {}  # whoever may not ask has nothing to say
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
