"""What a person does on the screen of recipes, as functions that several tests use."""

from __future__ import annotations

import json

from playwright.sync_api import Locator, Page, expect


def paste(page: Page, text: str) -> None:
    """Paste a request or an answer, and use it."""
    page.locator("textarea").first.fill(text)
    page.get_by_role("button", name="Use it").click()


def give(page: Page, shown: str, name: str) -> None:
    """Click a part of the request, and say that the caller gives it."""
    page.get_by_role("button", name=shown, exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("The caller gives it").click()
    dialog.get_by_label("Its name").fill(name)
    dialog.get_by_role("button", name="Use this").click()
    expect(dialog).to_have_count(0)


def result_of(page: Page) -> Locator:
    """Where the result of a trial or a call is shown."""
    return page.get_by_label("Result", exact=True)


def try_it(page: Page) -> None:
    """Try the recipe, and wait until it has succeeded."""
    page.get_by_role("button", name="Try it").click()
    expect(result_of(page)).to_contain_text("Succeeded")


def field_of(page: Page, name: str) -> Locator:
    """The field of an argument in the form of a tool."""
    return page.locator(f"#root_{name}")


def save(page: Page, name: str) -> None:
    """Save the recipe under a name, and open the tool."""
    page.get_by_label("Name of the tool").fill(name)
    page.get_by_label("What does it do?").fill(f"What a person made of {name}")
    page.get_by_role("button", name="Save as a tool").click()
    page.get_by_role("link", name="Saved.").click()


def document_of(page: Page) -> dict:
    """The document that the recipe describes now."""
    return json.loads(page.locator("details", has_text="As a document").locator("pre").text_content() or "")
