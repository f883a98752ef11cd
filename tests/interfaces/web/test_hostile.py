"""Hostile tools, results and moments in a real browser: shown as text, clearly, and nothing that was typed is lost."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from browser import SECONDS
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.page
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b>\u202e${x}{{x}}\x1b[31m"
FACTS = {
    "name": HOSTILE,
    "address": "host/shout@1.0.0",
    "description": HOSTILE * 50,
    "bundle": HOSTILE,
    "bundleID": "019b76da-a800-7292-8a5c-ab93e18af7bb",
    "version": HOSTILE,
    "tags": [HOSTILE],
    "enabled": False,
    "reason": HOSTILE,
    "cure": HOSTILE,
    "sameName": [],
    "parameters": {
        "type": "object",
        "properties": {HOSTILE: {"type": "string", "title": HOSTILE, "description": HOSTILE}},
    },
    "output": None,
    "requires": [HOSTILE],
    "sideEffects": HOSTILE,
    "requiresConfirmation": True,
    "limits": HOSTILE,
    "kind": HOSTILE,
    "documentation": f"[click](javascript:alert(1)) {HOSTILE}",
    "examples": [{HOSTILE: HOSTILE}],
    "origin": HOSTILE,
    "contentHash": HOSTILE,
    "warnings": [HOSTILE],
    "models": {"offered": False, "reason": HOSTILE},
    "shadowedBy": None,
}


def run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def result_of(page: Page):
    return page.get_by_label("Result", exact=True)


def describe(page: Page, **changed: object) -> None:
    """Have the server describe every tool so."""

    def answer(route: Route) -> None:
        route.fulfill(json={"tools": [{**FACTS, "name": "tool", "enabled": True, **changed}], "nextPageToken": None})

    page.route("**/crib/tools?**", answer)


def test_html_and_terminal_codes_in_descriptions_and_results_are_text(page):
    page.goto("/ui/#/tools")
    page.get_by_label("Search tools").fill("markup")
    row = page.get_by_role("listitem").filter(has_text="<script>")
    expect(row).to_be_visible()
    row.get_by_role("link").click()
    run(page)
    expect(result_of(page)).to_contain_text("<img src=x onerror=")
    assert page.title() == "Toolcrib"
    assert page.locator("img[src=x]").count() == 0


def test_every_fact_of_a_tool_may_be_hostile(page, watch):
    # No stored version has such a name.
    watch.expect("400")
    describe(page, **{key: value for key, value in FACTS.items() if key != "address"})
    page.goto(f"/ui/#/tools/{quote('any', safe='')}")
    for tab in ("Try it", "About", "Schema", "Use it elsewhere"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("heading", level=2)).to_contain_text("</script>")
        # Also in what libraries draw: labels of fields, headings, documentation.
        assert "\u202e" not in page.locator("body").inner_text(), tab
    page.get_by_role("tab", name="About").click()
    expect(page.get_by_role("paragraph").filter(has_text="click </script>")).to_be_visible()
    assert page.locator("a[href^=javascript]").count() == 0
    assert page.title() == "Toolcrib"


@pytest.mark.parametrize("name", ["wide", "deep"])
def test_a_schema_that_is_too_large_for_a_form_is_filled_in_as_json(page, name):
    page.goto(f"/ui/#/tools/{name}")
    expect(page.get_by_text("This schema is too large for a form.")).to_be_visible()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"f7": 1}' if name == "wide" else "{}")
    run(page)
    expect(result_of(page)).to_contain_text("Succeeded")


def test_ten_thousand_fields_and_a_hundred_levels_leave_the_page_usable(page):
    deep: dict[str, object] = {"type": "string"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"next": deep}}
    fields = {f"field{number}": {"type": "string", "description": "x" * 50} for number in range(10_000)}
    describe(page, parameters={"type": "object", "properties": {**fields, "deep": deep}})
    page.goto("/ui/#/tools/any")
    expect(page.get_by_text("This schema is too large for a form.")).to_be_visible()
    page.get_by_role("tab", name="Schema").click()
    expect(page.get_by_text("characters are shown").first).to_be_visible()


def test_what_the_project_refuses_to_load_is_named_on_the_screen_health(page):
    page.goto("/ui/#/health")
    expect(page.get_by_text("too_wide").first).to_be_visible()
    expect(page.get_by_text("too_deep").first).to_be_visible()


def test_a_recursive_schema_and_unions_of_unions_get_a_form_that_calls(page):
    page.goto("/ui/#/tools/recursive")
    page.get_by_label("name").first.fill("root")
    run(page)
    expect(result_of(page)).to_contain_text('"name": "root"')
    page.goto("/ui/#/tools/unions")
    page.get_by_role("heading", name="unions").wait_for()
    run(page)
    expect(result_of(page)).to_contain_text("Succeeded")


def test_a_result_of_fifty_megabytes_is_shown_in_pieces(page):
    page.goto("/ui/#/tools/huge")
    page.get_by_label("megabytes").fill("50")
    run(page)
    expect(result_of(page)).to_contain_text("52,428,800 characters")
    page.get_by_role("button", name="Show more").click()
    expect(result_of(page)).to_contain_text("100,000 of 52,428,800")


def test_an_answer_of_many_megabytes_at_once_is_cut_and_the_page_stays_usable(page):
    text = json.dumps({"ok": True, "value": "x" * 5_000_000, "intents": [], "meta": {}})
    page.route("**/call/*", lambda route: route.fulfill(body=text, content_type="application/json"))
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("hello")
    run(page)
    expect(result_of(page)).to_contain_text("20,000 of 5,000,000", timeout=30_000)
    page.get_by_role("tab", name="About").click()
    expect(page.get_by_text("Repeat a text in capitals.").first).to_be_visible()


def test_a_server_that_dies_in_the_middle_of_an_answer_is_named_and_the_arguments_stay(page, watch):
    watch.expect("ERR_", "Failed to load")
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("do not lose me")
    page.route("**/call/*", lambda route: route.abort("connectionreset"))
    run(page)
    expect(result_of(page)).to_contain_text("The connection broke off")
    expect(page.get_by_label("text")).to_have_value("do not lose me")
    page.unroute("**/call/*")
    run(page)
    expect(result_of(page)).to_contain_text("DO NOT LOSE ME")


@pytest.mark.spec("S1-92")
def test_a_stream_that_dies_in_the_middle_shows_what_came_as_text_and_says_so(page):
    told = {"progress": 1, "total": 2, "message": "half"}
    chunk = {"number": 1, "value": "<b>one</b>\u202e", "checked": False}
    body = f"event: progress\ndata: {json.dumps(told)}\n\nevent: chunk\ndata: {json.dumps(chunk)}\n\n"
    page.route("**/call/*", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("hello")
    run(page)
    expect(result_of(page)).to_contain_text("The connection broke off")
    expect(result_of(page)).to_contain_text("<b>one</b>\\u202e")
    expect(result_of(page)).to_contain_text("not checked yet")
    expect(result_of(page).get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")


def test_a_server_that_is_ended_while_it_streams_is_named_and_everything_typed_stays(browser, own_server):
    context = browser.new_context(base_url=own_server.url)
    page = context.new_page()
    page.goto("/ui/#/tools/pour")
    page.get_by_label("into").fill("the glass")
    run(page)
    expect(result_of(page)).to_contain_text("first drops")
    own_server.process.kill()
    own_server.process.wait(SECONDS)
    for _ in ("while it streams", "when it is gone"):
        expect(result_of(page)).to_contain_text("The connection broke off before the result arrived")
        expect(page.get_by_label("into")).to_have_value("the glass")
        run(page)
    context.close()


def test_an_answer_that_is_not_json_is_named(page, watch):
    watch.expect("502", "Failed to load")
    page.route("**/ui/tools?**", lambda route: route.fulfill(status=502, body="<html>bad gateway</html>"))
    page.goto("/ui/#/tools")
    expect(page.get_by_role("alert")).to_contain_text("502")


def test_a_call_that_hangs_can_be_stopped(page, watch):
    watch.expect("ERR_", "Failed to load")
    page.goto("/ui/#/tools/linger")
    page.get_by_label("note").fill("still here")
    run(page)
    expect(page.get_by_text("Running for")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(result_of(page)).to_contain_text("You stopped the call")
    expect(page.get_by_label("note")).to_have_value("still here")


def test_a_token_revoked_while_the_page_is_open_loses_nothing_that_was_typed(page, server, watch):
    watch.expect("401")
    # As behind a proxy, where every client needs a token.
    page.set_extra_http_headers({"X-Forwarded-For": "192.0.2.7"})
    page.goto(server.link())
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("typed before the end")
    for line in server.crib("token", "list").splitlines()[1:]:
        server.crib("token", "revoke", line.split()[0])
    run(page)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Nothing that you typed is lost")
    again = server.crib("token", "create", "person", "--scope", "read", "--scope", "invoke")
    dialog.get_by_label("Token").fill(again)
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_label("text")).to_have_value("typed before the end")
    run(page)
    expect(result_of(page)).to_contain_text("TYPED BEFORE THE END")


def test_ten_thousand_tools_scroll_to_the_last_one(page):
    def answer(route: Route) -> None:
        query = dict(part.split("=") for part in route.request.url.partition("?")[2].split("&"))
        offset, size = int(query["offset"]), int(query["size"])
        row = {**FACTS, "offered": True, "slug": "x", "description": "one of many", "enabled": True}
        rows = [
            {**row, "name": f"tool {number}", "address": f"host/tool{number}@1"}
            for number in range(offset, min(10_000, offset + size))
        ]
        route.fulfill(json={"tools": rows, "total": 10_000, "indexing": False, "filters": {}, "unbuilt": []})

    page.route("**/ui/tools?**", answer)
    page.goto("/ui/#/tools")
    expect(page.get_by_role("status")).to_have_text("10,000 tools")
    page.get_by_role("list", name="Tools").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="tool 9999")).to_be_visible()
    assert page.get_by_role("listitem").count() < 60
