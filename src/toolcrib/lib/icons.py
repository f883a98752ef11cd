"""Validate the icons of a tool, which clients show beside its name; the images themselves are not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ICONS = "icons"
MAX_ICONS = 8
MAX_LETTERS = 100_000
MAX_SIZES = 16
MAX_WORD = 64
KEYS = ("src", "mimeType", "sizes", "theme")
THEMES = ("light", "dark")
SAMPLE = '[{"src": "https://example.org/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}]'

Icon = dict[str, object]
Problem = tuple[tuple[str | int, ...], str]


def read_icons(given: object) -> tuple[list[Icon], list[Problem]]:
    """The valid icons, and the problems of the others, each with its place."""
    if given is None:
        return [], []
    if not isinstance(given, list | tuple):
        return [], [((ICONS,), f"must be a list; write {SAMPLE}")]
    icons: list[Icon] = []
    problems: list[Problem] = []
    for place, icon in enumerate(given[:MAX_ICONS]):
        wrong = next(_problems(icon), "")
        if wrong:
            problems.append(((ICONS, place), wrong))
        else:
            icons.append({key: _plain(icon[key]) for key in KEYS if key in icon})
    if len(given) > MAX_ICONS:
        problems.append(((ICONS, MAX_ICONS), f"only {MAX_ICONS} are shown; remove the others"))
    return icons, problems


def _problems(icon: object) -> Iterator[str]:
    if not isinstance(icon, dict):
        yield 'must be an object; write {"src": "https://example.org/icon.png"}'
        return
    if unknown := [key for key in icon if key not in KEYS]:
        yield f"has no {unknown[0]!r:.40}; write {', '.join(KEYS)}"
    source = icon.get("src")
    if not isinstance(source, str) or not source.startswith(("https://", "data:image/")):
        yield "src: must be an address that begins with https:// or data:image/"
    elif len(source) > MAX_LETTERS or not source.isprintable() or " " in source:
        yield f"src: must have at most {MAX_LETTERS} letters, and no spaces"
    if not _is_word(icon.get("mimeType", "image/png")):
        yield 'mimeType: must be a text such as "image/png"'
    sizes = icon.get("sizes", [])
    if not isinstance(sizes, list | tuple) or len(sizes) > MAX_SIZES or not all(_is_word(size) for size in sizes):
        yield 'sizes: must be a list such as ["48x48"] or ["any"]'
    if icon.get("theme", THEMES[0]) not in THEMES:
        yield f"theme: must be {' or '.join(THEMES)}"


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_WORD and value.isprintable()


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
