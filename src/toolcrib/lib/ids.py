"""Make identifiers of bundles and tools: UUIDs of version 7, new ones and ones that are the same wherever they are worked out."""

from __future__ import annotations

import hashlib
import os
import re
import time

# 2026-01-01: ids that are worked out have no time of their own, and sort before every id that is made.
_EPOCH_MS = 1_767_225_600_000
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def new_id() -> str:
    """A UUID of version 7, of now."""
    return _spell(time.time_ns() // 1_000_000, os.urandom(10))


def stable_id(*words: str) -> str:
    """The UUID of version 7 that these words have on every machine and in every process."""
    spelled = [word.encode("utf-8", "surrogatepass") for word in words]
    text = b"".join(len(word).to_bytes(4, "big") + word for word in spelled)
    return _spell(_EPOCH_MS, hashlib.sha256(text).digest())


def is_uuid7(text: object) -> bool:
    """Whether it is a UUID of version 7 in its usual spelling, of either case."""
    return isinstance(text, str) and _UUID7.fullmatch(text.lower()) is not None


def _spell(milliseconds: int, rest: bytes) -> str:
    number = (milliseconds & (2**48 - 1)) << 80 | int.from_bytes(rest[:10], "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
