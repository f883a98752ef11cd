"""Fuzz the parsers of what others write: guided by coverage, each in a process of its own.

An exception that a parser does not declare, more than a second of computing for one input and more than 512 MB of memory are
failures; the input that did it lies in `.judges/fuzz/found`. `tests/support/parsers.py` says what is tried.

`python judges/fuzz.py` fuzzes every parser for ten seconds, or for FUZZ_SECONDS; with names, only these. What was learned stays in
`.judges/fuzz/corpus` and is where the next run begins.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = Path(__file__).resolve().parent.parent / ".judges" / "fuzz"
SECONDS = float(os.environ.get("FUZZ_SECONDS", "10"))
AT_ONCE = 2
MAX_MEGABYTES = 512
MAX_COMPUTING = 1.0
# Beyond the time for all inputs: starting, and the one input that libFuzzer itself ends.
PATIENCE = 120
SHOWN_LINES, SHOWN_LETTERS = 40, 300


def bounded(parse: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """The parser, failing for an input that takes it too long; by its own computing, so that a busy machine is not a failure."""

    def judge(data: bytes) -> None:
        start = time.thread_time()
        parse(data)
        took = time.thread_time() - start
        if took > MAX_COMPUTING:
            raise AssertionError(f"it computed {took:.1f} s for {len(data)} bytes")

    return judge


def fuzz(name: str, words: list[str]) -> None:
    """Fuzz one parser in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["toolcrib"]):
        from parsers import PARSERS
    parser = PARSERS[name]
    for data in parser.inputs():
        # Also imports what is imported on demand, which would count as computing.
        parser.parse(data)
    atheris.Setup([sys.argv[0], *words], bounded(parser.parse))
    atheris.Fuzz()


def run(name: str, inputs: list[bytes], max_bytes: int) -> tuple[str, str]:
    """Fuzz one parser in a process of its own; gives what is wrong, or nothing, and what the process said."""
    corpus, found = PLACE / "corpus" / name, PLACE / "found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (corpus / f"seed-{number}").write_bytes(data)
    words = [f"-max_total_time={SECONDS:.0f}", f"-max_len={max_bytes}", f"-rss_limit_mb={MAX_MEGABYTES}", "-timeout=30"]
    words += [f"-artifact_prefix={found}/{name}-", "-print_final_stats=1", str(corpus)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS + PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {SECONDS + PATIENCE:.0f} s", ""
    return (f"ended with {done.returncode}" if done.returncode else ""), done.stdout + done.stderr


def main(names: list[str]) -> int:
    """Fuzz the named parsers, or all; the exit code says whether all held."""
    if names[:1] == ["--one"]:
        fuzz(names[1], names[2:])
        return 0
    from parsers import MAX_BYTES, PARSERS

    if unknown := set(names) - PARSERS.keys():
        raise SystemExit(f"there is no parser {', '.join(sorted(unknown))}; there are {', '.join(PARSERS)}")
    failed, chosen = 0, names or [*PARSERS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = pool.map(lambda name: run(name, PARSERS[name].inputs(), MAX_BYTES), chosen)
        for name, (wrong, said) in zip(chosen, done, strict=True):
            counted = re.search(r"number_of_executed_units: +(\d+)", said)
            print(f"{'FAILED' if wrong else 'ok':8} {name}: {counted[1] if counted else 'no'} inputs {wrong}".rstrip())
            if wrong:
                failed += 1
                print("\n".join(f"    {line[:SHOWN_LETTERS]}" for line in said.splitlines()[-SHOWN_LINES:]))
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
