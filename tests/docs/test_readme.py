"""The README is short, and the figures of the first minutes are about the commands that it and the tutorial show."""

import re
from itertools import takewhile

import pytest

from consoles import steps_of

WALKED = ("README.md", "docs/tutorial.md")


@pytest.fixture
def commands(blocks) -> dict[str, list[str]]:
    consoles = [block for block in blocks if block.language == "console" and block.page in WALKED]
    return {
        page: [line for block in consoles if block.page == page for line, _ in steps_of(block.text)] for page in WALKED
    }


def test_the_readme_is_read_in_a_few_minutes(root):
    assert len((root / "README.md").read_text(encoding="utf-8").splitlines()) <= 140


def test_the_first_call_takes_at_most_five_commands_with_the_environment(commands):
    for page in WALKED:
        before = list(takewhile(lambda line: not line.startswith("crib call"), commands[page]))
        assert len(["python3 -m venv my-env", *before, "crib call"]) <= 5, page


def test_the_figures_of_the_first_minutes_are_about_every_command_that_is_shown(root, commands):
    page = (root / "docs" / "first-minutes.md").read_text(encoding="utf-8")
    for name in WALKED:
        section = page.partition(f"**{name}**")[2].partition("\n**")[0]
        listed = re.findall(r"^\| `(.*)` \| [\d.]+ \| [\d.]+ \| [\d,]+ \|$", section, re.MULTILINE)
        shown = [line for line in commands[name] if not line.startswith("cd ")]
        assert listed == shown, "run: python tests/walk_readme.py --write"
