"""Every page has a place in the site, and the site asks no other server for anything; the judge `site` builds it."""

import importlib.util
from collections import Counter
from types import ModuleType

import pytest
import yaml


@pytest.fixture(scope="module")
def site(request) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "toolcrib_docs_site", request.config.rootpath / "scripts/docs_site.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def settings(root) -> dict:
    return yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))


def pages_of(nav: list) -> list[str]:
    inside = [value for item in nav if isinstance(item, dict) for value in item.values()]
    return [item for item in nav if isinstance(item, str)] + [page for part in inside for page in pages_of(part)]


def test_every_page_stands_in_the_navigation_once(site, settings, root):
    listed = pages_of(site.with_decisions(settings["nav"], root / "docs"))
    pages = [page.relative_to(root / "docs").as_posix() for page in (root / "docs").rglob("*.md")]
    assert Counter(listed) == Counter([*pages, "CHANGELOG.md"])


def test_the_start_stands_before_how_to_reference_and_explanation(settings):
    assert [list(part) for part in settings["nav"]] == [["Start"], ["How to"], ["Reference"], ["Explanation"]]
    assert settings["nav"][0]["Start"][0] == "index.md"


def test_a_decision_has_its_number_in_its_title(root):
    titles = {
        page.name: page.read_text(encoding="utf-8").partition("\n")[0] for page in root.glob("docs/decisions/0*.md")
    }
    assert [name for name, title in titles.items() if not title.startswith(f"# {int(name[:4])}. ")] == []


def test_the_theme_takes_no_font_from_elsewhere_and_counts_no_readers(settings):
    assert settings["theme"]["font"] is False
    assert "analytics" not in settings.get("extra", {})
    assert settings["plugins"] == ["search"]


def test_a_page_is_adapted_to_the_site(site):
    page = "```python file=examples/a.py\n1\n```\n[changes](../CHANGELOG.md)\n```mermaid\nflowchart TD\n    a --> b\n    a ==> c\n```\n"
    assert site.adapt(page) == (
        '```python title="examples/a.py"\n1\n```\n[changes](CHANGELOG.md)\n'
        "| module | imports |\n|---|---|\n| `a` | `b`, `c` |\n"
    )


def test_what_a_page_would_fetch_from_elsewhere_is_found(site):
    fetched = '<link rel="stylesheet" href="https://fonts.example/a.css"><script src="//cdn.example/b.js"></script>'
    kept = '<a href="https://example.com">a link</a><script src="assets/c.js"></script><link rel="canonical" href="https://e.com/">'
    assert site.requests_of(fetched + kept) == ["https://fonts.example/a.css", "//cdn.example/b.js"]
