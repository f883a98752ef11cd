"""The calls of one conversation share a mode and a number of steps."""

from toolcrib import Call, Crib, tool


@tool(modes=["text"])
def table() -> str:
    """A table, which cannot be read aloud."""
    return "a | b"


@tool
def now() -> str:
    """The time."""
    return "noon"


if __name__ == "__main__":
    with Crib(tools=[table, now]) as crib:
        voice = crib.session(mode="voice", max_calls=1)
        print(crib.call_sync(Call(name="table", session=voice)).error)
        print(crib.call_sync(Call(name="now", session=voice)).meta["steps"])
        print(crib.call_sync(Call(name="now", session=voice)).error)
