"""The page in another language: a JSON file in the data folder is enough, and no text of the page is left in English."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.page
# Every vowel of a text gets a mark, so that a text that does not come from the table is seen at once.
MARKS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
SCREENS = {
    "tools": ("Search tools", "Bundle"),
    "bundles": ("New bundle", "Import a bundle"),
    "recipes": ("Make a tool", "Web requests"),
    "approvals": ("Approvals",),
    "requests": ("Ask for a tool", "No tool was requested yet."),
    "activity": ("Calls over time", "By tool"),
    "access": ("Tokens", "Limits of this server"),
    "health": ("Problems", "Sandbox"),
}


def marked(text: str) -> str:
    """A text with marks; what stands in braces is filled in by the page."""
    return "".join(part if part.startswith("{") else part.translate(MARKS) for part in re.split(r"(\{\w+\})", text))


@pytest.fixture
def translated(page: Page, server) -> Page:
    """A page of a server that has a language of our own, made from the table that translators begin with."""
    page.goto(server.link())
    page.get_by_role("navigation").wait_for()
    texts = page.request.get("/ui/messages.json").json()
    folder = server.project / ".toolcrib" / "languages"
    folder.mkdir(exist_ok=True)
    (folder / "eo.json").write_text(json.dumps({key: marked(text) for key, text in texts.items()}))
    return page


def test_every_screen_speaks_the_language_of_the_address(translated, browser, server):
    page = translated
    # Activity has something to show.
    fresh = browser.new_context(base_url=server.url)
    assert fresh.request.post("/call/shout", data={"text": "x"}).ok
    fresh.close()
    for screen, texts in SCREENS.items():
        page.goto(f"/ui/?lang=eo#/{screen}")
        for text in texts:
            expect(page.get_by_text(marked(text), exact=True).first).to_be_visible()
            expect(page.get_by_text(text, exact=True)).to_have_count(0)
    assert page.evaluate("document.documentElement.lang") == "eo"


def test_a_call_and_what_is_wrong_with_its_arguments_are_told_in_the_language(translated):
    page = translated
    page.goto("/ui/?lang=eo#/tools/choices")
    page.get_by_role("combobox", name="to").click()
    page.get_by_role("option", name="mail").click()
    page.get_by_label("address").fill("a")
    expect(page.get_by_text(marked("must have at least 3 characters"))).to_be_visible()
    page.get_by_label("address").fill("a@b")
    page.get_by_role("button", name=marked("Run"), exact=True).click()
    expect(page.get_by_label(marked("Result"), exact=True)).to_contain_text(marked("Succeeded"))


@pytest.mark.parametrize("context", [{"locale": "eo-XX"}], indirect=True, ids=["of the browser"])
def test_without_an_address_the_browser_says_which_language(translated):
    translated.goto("/ui/#/tools")
    translated.reload()
    expect(translated.get_by_role("heading", name=marked("Tools"), level=2)).to_be_visible()


def test_the_chat_and_the_palette_in_it_speak_the_language(translated, watch):
    watch.expect("409")
    page = translated
    page.goto("/ui/chat.html?lang=eo")
    expect(page.get_by_role("heading", name=marked("A chat with tools"))).to_be_visible()
    page.get_by_role("combobox", name=marked("Type + and the name of a tool")).press_sequentially("+wipe")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.get_by_label("folder").fill("attic")
    page.get_by_role("button", name=marked("Call"), exact=True).click()
    page.get_by_role("alertdialog", name=marked("This call needs your confirmation")).wait_for()
    page.get_by_role("button", name=marked("Do not run it")).click()
    expect(page.get_by_role("status")).to_have_text(marked("It was not run."))
