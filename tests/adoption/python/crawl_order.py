import asyncio
from dataclasses import asdict, dataclass, field


@dataclass(order=True)
class Page:
    depth: int
    url: str
    links: "list[Page]" = field(default_factory=list, compare=False)


async def _walk(page: Page, out: list, limit: int) -> None:
    if len(out) >= limit:
        return
    out.append(page.url)
    await asyncio.sleep(0)
    for child in sorted(page.links):
        await _walk(child, out, limit)


def crawl_order(root: Page, limit: int = 10) -> list[str]:
    """Order in which the crawler visits pages (a tree of them)."""
    if limit < 0:
        raise ValueError("limit is negative")
    out: list[str] = []
    asyncio.run(_walk(root, out, limit))
    return out
