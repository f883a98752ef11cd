"""The web page in a real browser: list, search, switch and call by mouse and by keyboard, and a recipe on the canvas."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.interfaces.web.recipe_page import document_of, paste

pytestmark = pytest.mark.page


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
    expect(page.get_by_role("status")).to_have_text("1 tool")
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


@pytest.mark.spec("S1-96")
def test_two_requests_of_a_recipe_are_connected_on_the_canvas_by_keyboard(page):
    page.goto("/ui/#/recipes")
    paste(page, "https://shop.example.com/orders")
    paste(page, '{"parcel": {"id": 7}}')
    paste(page, """curl https://shop.example.com/track --json '{"note": "x", "parcel": 1}'""")
    page.get_by_text("Canvas", exact=True).click()
    page.get_by_role("button", name="request_1 gives parcel.id, such as 7").press("Enter")
    # The address and two headers take a number as text; the note is a text in JSON and does not.
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("request_1.parcel.id goes into parcel of request_2.")
    body = document_of(page)["impl"]["calls"][1]["bodyTemplate"]
    assert '"parcel": "${request_1.parcel.id}"' in body
