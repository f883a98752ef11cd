"""Every link of a page leads somewhere."""

import re

LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def links_of(page):
    """The links of a page into the repository: as they are written, the file, and the heading in it."""
    for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if not target.startswith("https://"):
            path, _, anchor = target.partition("#")
            yield f"{page.name}: {target}", (page.parent / path).resolve() if path else page, anchor


def test_every_link_leads_to_a_file_and_a_heading_that_are_there(pages):
    links = [link for page in pages for link in links_of(page)]
    assert [place for place, file, _ in links if not file.is_file()] == [], "a folder is linked by its README.md"
    into = ((place, file.read_text(encoding="utf-8"), anchor) for place, file, anchor in links if anchor)
    assert [place for place, text, anchor in into if anchor not in anchors_of(text)] == []


def test_every_page_can_be_reached_from_the_readme(root, pages):
    reached, waiting = set(), [root / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        waiting += [file for _, file, _ in links_of(page) if file.suffix == ".md"]
    assert set(pages) <= reached
