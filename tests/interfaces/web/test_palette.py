"""The palette in a chat page: a slug that is typed is resolved by the server, and an unknown one calls nothing."""

from __future__ import annotations

import pytest
from browser import Watch
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


def open_tool(page: Page, slug: str) -> None:
    """Type the name of a tool in the palette, and choose it."""
    page.get_by_role("combobox", name="Type +").press_sequentially(f"+{slug}")
    expect(page.get_by_role("option", name=f"{slug} –")).to_have_count(1)
    page.keyboard.press("Enter")


@pytest.mark.spec("S1-07")
def test_a_call_that_needs_confirmation_shows_what_would_run_and_runs_once_confirmed(page: Page, watch: Watch) -> None:
    watch.expect("409")
    page.goto("/ui/chat.html")
    open_tool(page, "wipe")
    page.get_by_label("folder").fill("attic")
    page.keyboard.press("Enter")
    question = page.get_by_role("alertdialog", name="This call needs your confirmation")
    expect(question).to_contain_text('"folder": "attic"')
    expect(question).to_contain_text("/wipe@")
    expect(question.get_by_role("button", name="Do not run it")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("It was not run.")
    expect(page.get_by_role("button", name="Insert the result")).to_have_count(0)
    page.keyboard.press("Enter")
    question.wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("wiped attic")
    page.get_by_role("button", name="Insert the result").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("[wipe] wiped attic")


@pytest.mark.spec("S1-07")
def test_unions_and_lists_are_filled_in_without_json(page: Page) -> None:
    page.goto("/ui/chat.html")
    open_tool(page, "unions")
    page.get_by_role("button", name="Add value").click()
    kind = page.get_by_label("value: which kind?")
    assert kind.locator("option").all_text_contents() == ["Text or number", "Pair", "List"]
    kind.select_option("Pair")
    page.get_by_role("button", name="Add left").click()
    page.get_by_label("left: which kind?").select_option("Whole number")
    page.get_by_label("Whole number *").fill("7")
    assert page.locator("toolcrib-palette textarea").count() == 0
    page.get_by_role("button", name="Call").click()
    expect(page.get_by_role("status")).to_contain_text('"left": 7')
    kind.select_option("List")
    page.get_by_role("button", name="Add an item to value").click()
    page.get_by_label("Text *").fill("one")
    page.get_by_role("button", name="Call").click()
    expect(page.get_by_role("status")).to_contain_text('"one"')


@pytest.mark.spec("S1-07")
def test_nested_objects_are_opened_level_by_level(page: Page) -> None:
    page.goto("/ui/chat.html")
    open_tool(page, "recursive")
    page.get_by_role("button", name="Add tree").click()
    page.get_by_role("textbox", name="name").fill("root")
    page.get_by_role("button", name="Add children").click()
    page.get_by_role("button", name="Add an item to children").click()
    page.get_by_role("textbox", name="name").nth(1).fill("leaf")
    page.get_by_role("button", name="Call").click()
    expect(page.get_by_role("status")).to_contain_text('"name": "leaf"')
    page.get_by_role("button", name="Remove children 1").click()
    page.get_by_role("button", name="Call").click()
    expect(page.get_by_role("status")).not_to_contain_text("leaf")
