"""How a tool says that it failed: the kind, the cure, and what it had achieved."""

from toolcrib import Crib, Kind, ToolError, tool


@tool
def book(table: int) -> str:
    """Book a table."""
    if table > 12:
        raise ToolError(Kind.VALIDATION, f"there is no table {table}; the tables are 1 to 12")
    raise ToolError(Kind.CONFLICT, f"table {table} is taken; ask for another one", details={"taken": [table]})


@tool
def crash(table: int) -> str:
    """Fail by mistake."""
    return ["a", "b"][table]


if __name__ == "__main__":
    with Crib(tools=[book, crash]) as crib:
        for name in ("book", "crash"):
            result = crib.call_sync(name, table=7)
            if result.error:
                print(result.error.kind, "-", result.error.message)
