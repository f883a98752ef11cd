"""Every screen in both colour schemes, wide and narrow: axe-core finds nothing, and nothing is wider than the window."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import AXE, SCREENSHOTS
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.page
LOOKS = [{"scheme": scheme, "width": width} for scheme in ("light", "dark") for width in (1440, 360)]
# What WCAG 2.2 AA asks for, and what axe-core calls good practice besides.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = "(rules) => axe.run(document, { runOnly: rules, resultTypes: ['violations'] }).then((found) => found.violations)"


def look(page: Page, name: str, look_: dict[str, object]) -> list[str]:
    """What is wrong with what the page shows now; a picture is kept of it."""
    expect(page.get_by_text("Loading …")).to_have_count(0)
    folder = os.environ.get(SCREENSHOTS)
    if folder:
        page.screenshot(path=Path(folder, f"{name}-{look_['scheme']}-{look_['width']}.png"))
    page.evaluate(Path(os.environ[AXE]).read_text(encoding="utf-8"))
    found = [
        f"{name}: {violation['id']}: {node['target']}: {node['failureSummary']}"
        for violation in page.evaluate(RUN, RULES)
        for node in violation["nodes"]
    ]
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        found.append(f"{name}: is wider than the window")
    return found


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_on_any_screen(signed_in, request):
    page, wanted = signed_in, request.node.callspec.params["context"]
    # Activity has something to show.
    page.goto("/ui/#/tools/fail")
    page.get_by_label("reason").fill("on purpose")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result", exact=True)).to_contain_text("on purpose")
    page.goto("/ui/#/tools")
    # The screens that the server has, so that a new one is judged too.
    paths = page.eval_on_selector_all("nav a", "links => links.map((link) => link.getAttribute('href'))")
    assert len(paths) > 4
    problems = []
    for path in paths:
        page.goto(f"/ui/{path}")
        page.get_by_role("heading", level=2).wait_for()
        problems += look(page, path.rpartition("/")[2], wanted)
    assert problems == []


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_on_the_screen_of_a_tool_and_its_results(signed_in, watch, request):
    watch.expect("409")
    page, wanted = signed_in, request.node.callspec.params["context"]
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("hello")
    problems = look(page, "tool-form", wanted)
    page.get_by_role("button", name="What would happen?").click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result", exact=True)).to_contain_text("HELLO")
    problems += look(page, "tool-result", wanted)
    page.get_by_text("JSON", exact=True).click()
    page.locator(".cm-content").wait_for()
    problems += look(page, "tool-json", wanted)
    for name in ("About", "Schema", "Use it elsewhere", "My runs"):
        page.get_by_role("tab", name=name).click()
        problems += look(page, f"tool-{name.lower().replace(' ', '-')}", wanted)
    page.goto("/ui/#/tools/wipe")
    page.get_by_label("folder").fill("attic")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("dialog").wait_for()
    problems += look(page, "tool-confirmation", wanted)
    assert problems == []


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_in_dialogs(signed_in, request):
    page, wanted = signed_in, request.node.callspec.params["context"]
    problems = []
    for path, button in (("bundles", "New bundle"), ("requests", "Ask for a tool"), ("access", "Revoke web page")):
        page.goto(f"/ui/#/{path}")
        page.get_by_role("button", name=button).first.click()
        page.get_by_role("dialog").wait_for()
        problems += look(page, f"{path}-dialog", wanted)
        page.keyboard.press("Escape")
    assert problems == []
