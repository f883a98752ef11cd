"""The web page in a real browser, quickly: list, search, switch and call by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


@pytest.mark.spec("S1-07")
def test_a_person_finds_a_tool_by_typing_and_calls_it_with_a_form(page):
    page.goto("/")
    page.get_by_label("Search tools").fill("shou")
    page.get_by_role("link", name="shout").click()
    page.get_by_label("text").fill("hello")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result", exact=True)).to_contain_text("HELLO")
    expect(page.get_by_label("Result", exact=True)).to_contain_text("Succeeded")


@pytest.mark.spec("S1-07", "S1-08")
def test_a_tool_is_disabled_and_enabled_by_keyboard_and_says_why_it_is_off(page):
    page.goto("/ui/#/tools")
    page.get_by_label("Search tools").press_sequentially("shout")
    expect(page.get_by_role("status")).to_have_text("1 tools")
    switch = page.get_by_role("switch", name="Enable shout")
    expect(switch).to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    expect(switch).not_to_be_checked()
    expect(page.get_by_role("listitem").filter(has_text="shout")).to_contain_text("This tool is off")
    page.keyboard.press("Space")
    expect(switch).to_be_checked()


@pytest.mark.spec("S1-08")
def test_the_error_of_a_tool_is_shown_in_its_own_words(page):
    page.goto("/ui/#/tools/fail")
    page.get_by_label("reason").fill("the moon is too bright")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result", exact=True)).to_contain_text("the moon is too bright")
