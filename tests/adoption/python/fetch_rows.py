import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Annotated, Callable, Optional


async def fetch_rows(
    table: Annotated[str, "The table to read"],
    where: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
    order: Optional[Iterable[str]] = None,
    *,
    limit: Annotated[int, "At most so many"] = 10,
    _retries: int = 3,
) -> list[dict[str, Any]]:
    """Fetch rows of a table."""
    await asyncio.sleep(0)
    return [{"table": table, "where": dict(where or {}), "columns": list(columns), "order": list(order or []), "limit": limit}]


async def main() -> None:
    rows = await fetch_rows("people")
    print(rows)


if __name__ == "__main__":
    asyncio.run(main())
