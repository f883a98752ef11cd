"""A value larger than `calls.result_bytes` is stored and read in pieces."""

from typing import Any

from toolcrib import Crib, tool


@tool
def report(lines: int) -> str:
    """A report of many lines."""
    return "\n".join(f"line {number}" for number in range(lines))


if __name__ == "__main__":
    with Crib(tools=[report], calls={"result_bytes": 10_000}) as crib:
        result = crib.call_sync("report", lines=5_000)
        kept: Any = result.meta["kept"]
        print(len(str(result.value)), "characters of", kept["letters"])
        piece = crib.read_result(kept["handle"], offset=48_000)
        print(piece.text.splitlines()[-1], piece.next)
