"""Every screen in both colour schemes, wide and narrow: axe-core finds nothing, and nothing is wider than the window."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import AXE, SCREENSHOTS
from playwright.sync_api import Page, expect
from tests.interfaces.web.recipe_page import paste

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


def open_screen(page: Page, path: str) -> None:
    """Open a screen, and wait until it is the one that is shown: the one before is there until the page has heard of it."""
    page.goto(f"/ui/{path}")
    expect(page.locator(f'nav a[href="{path}"]')).to_have_attribute("aria-current", "page")
    page.get_by_role("heading", level=2).wait_for()


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_on_any_screen(signed_in, request):
    page, wanted = signed_in, request.node.callspec.params["context"]
    # Activity has something to show.
    page.goto("/ui/#/tools/fail")
    page.get_by_label("reason").fill("on purpose")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result", exact=True)).to_contain_text("on purpose")
    open_screen(page, "#/tools")
    # A row that is lit up by the mouse is judged, too.
    page.get_by_role("listitem").first.hover()
    # The screens that the server has, so that a new one is judged too.
    paths = page.eval_on_selector_all("nav a", "links => links.map((link) => link.getAttribute('href'))")
    assert len(paths) > 4
    problems = []
    for path in paths:
        open_screen(page, path)
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
    if wanted["width"] < 1000:
        page.get_by_text("JSON", exact=True).click()
    page.get_by_role("textbox", name="Arguments as JSON").fill("{")
    expect(page.get_by_text("This is not valid JSON")).to_be_visible()
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
def test_axe_finds_nothing_in_what_an_approval_shows(signed_in, server, context, watch, request):
    watch.expect("409")
    page, wanted = signed_in, request.node.callspec.params["context"]
    server.crib("secret", "set", "ROOMS", stdin="sk-never-shown-1\n")
    name = f"caller {wanted['scheme']} {wanted['width']}"
    token = server.crib("token", "create", name, "--scope", "invoke")
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    for path, call in (("wipe", {"folder": name}), ("book_room", {"city": name, "guest": "A" * 300})):
        assert fresh.request.post(f"/call/{path}", data=call).status == 409
    fresh.close()
    open_screen(page, "#/approvals")
    cards = page.get_by_role("article").filter(has_text=name)
    expect(cards).to_have_count(2)
    expect(cards.first.get_by_role("button", name="Approve once")).to_be_enabled()
    assert look(page, "approvals-waiting", wanted) == []
    for place in (0, 1):
        for folded in cards.nth(place).locator("summary").all():
            folded.click()
        cards.nth(place).get_by_role("button", name="Refuse").click()
        expect(cards.nth(place)).to_contain_text("You refused")
    assert look(page, "approvals-decided", wanted) == []


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_in_dialogs(signed_in, request):
    page, wanted = signed_in, request.node.callspec.params["context"]
    problems = []
    for path, button in (
        ("bundles", "New bundle"),
        ("requests", "Ask for a tool"),
        ("access", "Make a token"),
        ("access", "Revoke web page"),
    ):
        open_screen(page, f"#/{path}")
        page.get_by_role("button", name=button).first.click()
        page.get_by_role("dialog").wait_for()
        problems += look(page, f"{path}-dialog", wanted)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert problems == []


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_in_a_recipe_as_a_list_and_on_the_canvas(page, request):
    wanted = request.node.callspec.params["context"]
    page.goto("/ui/#/recipes")
    page.get_by_role("heading", name="Make a tool").wait_for()
    page.get_by_text("A function", exact=True).click()
    page.get_by_label("Name of another one").fill("sides")
    page.keyboard.press("Enter")
    problems = look(page, "recipe-function", wanted)
    page.get_by_text("A database", exact=True).click()
    page.get_by_label("Statement", exact=True).fill("SELECT :city")
    problems += look(page, "recipe-query", wanted)
    page.get_by_text("Web requests").click()
    paste(page, """curl -u ada:pw https://shop.example.com/orders --json '{"item": "lamp", "tags": ["a"]}'""")
    paste(page, '{"order": {"id": 7}, "next": "n"}')
    paste(page, "https://shop.example.com/parcels/1?page=1")
    for summary in page.locator("details.fold > summary").all():
        summary.click()
    for select, kind in (("How does the service know who asks?", "hmac"), ("Does the answer come in pages?", "cursor")):
        page.get_by_label(select).last.select_option(kind)
    problems += look(page, "recipe-list", wanted)
    page.get_by_text("Canvas", exact=True).click()
    page.get_by_role("button", name="request_1 gives order.id").click()
    problems += look(page, "recipe-connecting", wanted)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="2. request_2: edit").click()
    page.get_by_role("region", name="Editor of request_2").wait_for()
    problems += look(page, "recipe-canvas", wanted)
    page.goto("/ui/#/recipes/samples%2Fserver-health%40v1")
    page.get_by_role("heading", name="Change samples/server-health@v1").wait_for()
    page.get_by_label("Name of the tool").wait_for()
    problems += look(page, "recipe-stored", wanted)
    assert problems == []


@pytest.mark.parametrize("context", LOOKS, indirect=True, ids=lambda wanted: f"{wanted['scheme']}-{wanted['width']}")
def test_axe_finds_nothing_in_the_palette_of_a_chat(page, watch, request):
    watch.expect("409")
    wanted = request.node.callspec.params["context"]
    page.goto("/ui/chat.html")
    page.get_by_role("combobox").press_sequentially("+unions")
    page.get_by_role("option").first.wait_for()
    problems = look(page, "palette-list", wanted)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Add value").click()
    page.get_by_label("value: which kind?").select_option("List")
    page.get_by_role("button", name="Add an item to value").click()
    problems += look(page, "palette-form", wanted)
    page.get_by_role("button", name="Close").click()
    page.get_by_role("combobox", name="Type +").press_sequentially("+wipe")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.get_by_label("folder").fill("attic")
    page.keyboard.press("Enter")
    page.get_by_role("alertdialog").wait_for()
    problems += look(page, "palette-question", wanted)
    assert problems == []
