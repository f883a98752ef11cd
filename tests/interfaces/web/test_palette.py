"""The palette in a chat page: a slug that is typed is resolved by the server, and an unknown one calls nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.page


@pytest.mark.spec("S1-04", "S1-07")
def test_a_tool_is_found_called_and_its_result_inserted(page: Page) -> None:
    page.goto("/ui/chat.html")
    page.get_by_role("combobox").press_sequentially("+shout")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    page.get_by_label("text").fill("hello")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Insert the result").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("[shout] HELLO")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("log")).to_contain_text("I have read the result of the tool.")


@pytest.mark.spec("S1-04")
def test_an_unknown_slug_gives_an_empty_list_and_no_call(page: Page) -> None:
    calls: list[str] = []
    page.on("request", lambda request: calls.append(request.url) if request.method == "POST" else None)
    page.goto("/ui/chat.html")
    with page.expect_response(lambda answer: "/tools/search" in answer.url):
        page.get_by_role("combobox").press_sequentially("+zzqqxx")
    expect(page.get_by_role("option")).to_have_count(0)
    page.keyboard.press("Enter")
    assert calls == []


@pytest.mark.spec("S1-07")
def test_a_tool_is_disabled_and_enabled_in_the_palette(page: Page) -> None:
    page.goto("/ui/chat.html")
    for wanted in (False, True):
        page.get_by_role("combobox").press_sequentially("+shout")
        expect(page.get_by_role("option")).to_have_count(1)
        page.keyboard.press("Enter")
        with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
            page.get_by_label("Enabled").set_checked(wanted)
        assert answered.value.json()["isEnabled"] is wanted
        page.get_by_role("button", name="Close").click()


def test_a_second_result_replaces_the_first(page: Page) -> None:
    page.goto("/ui/chat.html")
    page.get_by_role("combobox").press_sequentially("+shout")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    for text in ("one", "two"):
        page.get_by_label("text").fill(text)
        page.get_by_role("button", name="Call").click()
        expect(page.get_by_role("status")).to_have_text(text.upper())
    page.get_by_role("button", name="Insert the result").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("[shout] TWO")


def test_hostile_text_stays_text(page: Page) -> None:
    page.goto("/ui/chat.html")
    page.get_by_role("combobox").press_sequentially("+shout")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    page.get_by_label("text").fill("<img src=x onerror=alert(1)>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("<IMG SRC=X ONERROR=ALERT(1)>")
    assert page.locator("toolcrib-palette img").count() == 0
