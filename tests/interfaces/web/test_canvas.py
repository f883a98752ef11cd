"""The canvas of the recipe builder: what the list of steps can do, it can, with a mouse and with the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.interfaces.web.recipe_page import document_of, paste

pytestmark = pytest.mark.page
ORDER = """curl https://shop.example.com/orders --json '{"item": "lamp", "count": 1}'"""
ANSWER = '{"parcel": {"id": 7, "name": "lamp", "day": "2026-03-01"}, "tags": ["a"], "next": 9}'
TRACK = """curl https://shop.example.com/parcels/1 --json '{"weight": 2, "labels": ["x"], "on": "2025-01-01"}'"""


@pytest.fixture
def canvas(page: Page) -> Page:
    """Two requests, the first with an answer, on the canvas."""
    page.goto("/ui/#/recipes")
    paste(page, ORDER)
    paste(page, ANSWER)
    paste(page, TRACK)
    page.get_by_text("Canvas", exact=True).click()
    expect(page.locator(".react-flow__node")).to_have_count(2)
    return page


def output(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=f"request_1 gives {name}, such as")


def slot(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^{re.escape(name)} of request_2[:,]"))


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the focus is there."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError("Tab does not reach it")


def calls_of(page: Page) -> list[dict]:
    return document_of(page)["impl"]["calls"]


@pytest.mark.spec("S1-96")
def test_a_connection_is_made_changed_and_removed_with_the_keyboard_alone(canvas: Page) -> None:
    page = canvas
    page.get_by_role("radio", name="Canvas").focus()
    tab_to(page, page.get_by_role("button", name="1. request_1: edit"))
    # Up from the name of a step is its last value; the first value is right behind its slots.
    for _ in range(20):
        page.keyboard.press("ArrowDown")
        if output(page, "parcel.id").evaluate("(element) => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Connecting request_1.parcel.id")
    # Only slots that take a number are gone through: two of the address, two headers, the weight.
    expect(slot(page, "Address 1")).to_be_focused()
    for name in ("Address 2", "Content-Type", "Accept", "weight"):
        page.keyboard.press("ArrowDown")
        expect(slot(page, name)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".react-flow__edge")).to_have_count(1)
    assert '"weight": "${request_1.parcel.id}"' in calls_of(page)[1]["bodyTemplate"]

    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("radio", name="From an earlier answer")).to_be_checked()
    tab_to(page, dialog.get_by_role("combobox", name="Which value?"))
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("next")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    tab_to(page, dialog.get_by_role("button", name="Use this"))
    page.keyboard.press("Enter")
    expect(slot(page, "weight")).to_be_focused()
    assert '"weight": "${request_1.next}"' in calls_of(page)[1]["bodyTemplate"]

    page.keyboard.press("Delete")
    expect(page.locator(".react-flow__edge")).to_have_count(0)
    expect(slot(page, "weight")).to_be_focused()
    assert '"weight": 2' in calls_of(page)[1]["bodyTemplate"]


@pytest.mark.spec("S1-96")
def test_escape_gives_a_connection_up_and_its_button_removes_one(canvas: Page) -> None:
    page = canvas
    output(page, "tags").focus()
    page.keyboard.press("Enter")
    expect(slot(page, "labels")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("status")).to_have_text("Nothing was connected.")
    output(page, "tags").click()
    slot(page, "labels").click()
    # What stood in the list is replaced with it.
    expect(slot(page, "labels.0")).to_have_count(0)
    page.get_by_role("button", name="Remove the connection from request_1.tags to labels of request_2").press("Enter")
    expect(page.locator(".react-flow__edge")).to_have_count(0)
    expect(slot(page, "labels.0")).to_have_count(1)


@pytest.mark.spec("S1-96")
def test_a_value_that_does_not_fit_is_refused_with_the_reason(canvas: Page) -> None:
    page = canvas
    output(page, "parcel.name").click()
    # It is marked as disabled, which a mouse does not mind.
    slot(page, "weight").click(force=True)
    expect(page.get_by_role("status")).to_have_text(
        "request_1.parcel.name does not fit into weight of request_2: a number is needed there."
    )
    output(page, "parcel.day").click()
    slot(page, "on").click()
    assert '"on": "${request_1.parcel.day}"' in calls_of(page)[1]["bodyTemplate"]


@pytest.mark.spec("S1-96")
def test_handles_are_connected_with_a_mouse_where_the_value_fits(canvas: Page) -> None:
    page = canvas
    handles = page.locator(".react-flow__handle")
    source = handles.and_(page.locator('[data-handleid=\'["parcel","id"]\']'))
    source.drag_to(handles.and_(page.locator('[data-handleid="body on"]')))
    expect(page.locator(".react-flow__edge")).to_have_count(0)
    source.drag_to(handles.and_(page.locator('[data-handleid="body weight"]')))
    expect(page.locator(".react-flow__edge")).to_have_count(1)


@pytest.mark.spec("S1-96")
def test_steps_are_edited_renamed_moved_added_and_removed_on_the_canvas_with_the_keyboard(canvas: Page) -> None:
    page = canvas
    page.get_by_role("button", name="1. request_1: edit").press("Enter")
    editor = page.get_by_role("region", name="Editor of request_1")
    expect(editor).to_be_focused()
    name = editor.get_by_label("Name of this request")
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("order")
    expect(page.get_by_role("button", name="1. order: edit")).to_be_visible()
    editor = page.get_by_role("region", name="Editor of order")
    tab_to(page, editor.get_by_role("button", name="id: 7"))
    page.keyboard.press("Enter")
    assert [call["name"] for call in calls_of(page)] == ["order", "request_2"]
    assert calls_of(page)[0]["extractExpr"] == "$.parcel.id"
    editor.get_by_role("button", name="Move order down").press("Enter")
    assert [call["name"] for call in calls_of(page)] == ["request_2", "order"]
    page.keyboard.press("Escape")
    editor.get_by_role("button", name="Back to the canvas").press("Enter")
    expect(page.get_by_role("button", name="2. order: edit")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="1. request_2: edit")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove request_2").press("Enter")
    expect(page.get_by_role("button", name="1. order: edit")).to_be_focused()
    paste(page, "https://shop.example.com/other")
    expect(page.locator(".react-flow__node")).to_have_count(2)


@pytest.mark.spec("S1-96")
def test_the_list_offers_only_values_that_fit_and_says_why_there_are_none(page: Page) -> None:
    page.goto("/ui/#/recipes")
    paste(page, ORDER)
    paste(page, ANSWER)
    paste(page, """curl https://shop.example.com/x --json '{"weight": 2, "gift": true}'""")
    page.get_by_role("button", name="weight = 2").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("From an earlier answer").click()
    dialog.get_by_role("combobox", name="Which value?").click()
    assert dialog.get_by_role("option").all_text_contents() == ["request_1: parcel.id (7)", "request_1: next (9)"]
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="gift = true").click()
    dialog.get_by_text("From an earlier answer").click()
    expect(dialog).to_contain_text("None of the 8 values of earlier answers fits: yes or no is needed here.")
    expect(dialog.get_by_role("combobox", name="Which value?")).to_be_disabled()
