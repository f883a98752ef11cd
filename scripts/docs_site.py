"""Build the documentation as a site, and hold it to asking no other server for anything.

`make site` runs it in an environment of its own. mkdocs loads this file too, for the hooks below: the pages stay as they are
read in the repository, and what a site needs otherwise is changed here.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / ".site"
CHANGES = "CHANGELOG.md"
DECISIONS = "decisions"
FENCE_OF_A_FILE = re.compile(r"^(```+\w+) file=(\S+)$", re.MULTILINE)
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"^\s*(\S+) (?:-->|==>) (\S+)$", re.MULTILINE)
# What a browser fetches by itself when it shows a page; a link waits for its reader.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)


def on_files(files: Any, config: Any) -> Any:
    """Add the list of changes, which lies beside the folder of pages."""
    from mkdocs.structure.files import File

    text = (ROOT / CHANGES).read_text(encoding="utf-8")
    files.append(File.generated(config, CHANGES, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def on_config(config: Any) -> Any:
    """Put every decision below their table, so that a new one needs no line in the settings."""
    config.nav = with_decisions(config.nav, ROOT / "docs")
    return config


def with_decisions(nav: list[Any], folder: Path) -> list[Any]:
    """The navigation with the page of every decision where their table stands."""
    pages = [page.relative_to(folder).as_posix() for page in sorted((folder / DECISIONS).glob("0*.md"))]
    return [
        {title: with_decisions(inside, folder) for title, inside in item.items()} if isinstance(item, dict) else item
        for item in nav
    ] + (pages if f"{DECISIONS}/README.md" in nav else [])


def on_page_markdown(markdown: str, **_: object) -> str:
    """Change what only a repository shows as it is meant."""
    return adapt(markdown)


def adapt(markdown: str) -> str:
    """A page for the site: files have titles, a diagram is a table, and the list of changes is a page."""
    titled = FENCE_OF_A_FILE.sub(r'\1 title="\2"', markdown)
    # A browser would have to fetch the program that draws the diagram from another server.
    drawn = DIAGRAM.sub(lambda found: _table_of(found[1]), titled)
    return drawn.replace(f"](../{CHANGES}", f"]({CHANGES}")


def requests_of(html: str) -> list[str]:
    """Addresses of other servers that a page makes a browser fetch from."""
    reader = _Reader()
    reader.feed(html)
    return reader.found


def main() -> int:
    """Build the site strictly; every warning and every request to another server is a failure."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    # The theme warns of a version of mkdocs that its own bound keeps out.
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(SITE), strict=True)
    try:
        build(config)
    except Abort as error:
        print(error)
        return 1
    wrong = [
        f"{page.relative_to(ROOT)}: it fetches {address}; the site may not ask another server for anything"
        for page in sorted(SITE.rglob("*.html"))
        for address in requests_of(page.read_text(encoding="utf-8"))
    ]
    print("\n".join(wrong) if wrong else f"built {SITE.relative_to(ROOT)}/index.html")
    return 1 if wrong else 0


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the browser would fetch for this element."""
        said = dict(attrs)
        address = said.get(FETCHED.get(tag, "")) or ""
        is_fetched = tag != "link" or FETCHED_LINKS & set((said.get("rel") or "").split())
        if is_fetched and ELSEWHERE.match(address):
            self.found.append(address)


def _table_of(diagram: str) -> str:
    imports: dict[str, list[str]] = {}
    for source, target in ARROW.findall(diagram):
        imports.setdefault(source, []).append(f"`{target}`")
    rows = [f"| `{source}` | {', '.join(targets)} |" for source, targets in imports.items()]
    return "\n".join(["| module | imports |", "|---|---|", *rows])


if __name__ == "__main__":
    sys.exit(main())
