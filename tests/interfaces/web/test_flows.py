"""Whole flows in a real browser, as a person goes through them: run, confirm, record, edit, ask for a tool, manage access."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.page
BEARER = {"type": "bearer", "token": "${secret:SKY_KEY}"}


def result_of(page: Page):
    return page.get_by_label("Result", exact=True)


def test_a_call_that_needs_confirmation_shows_exactly_what_will_run_and_runs_once(page, watch):
    watch.expect("409")
    page.goto("/ui/#/tools/wipe")
    page.get_by_label("folder").fill("attic")
    page.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog", name="Run wipe?")
    expect(dialog.get_by_role("row", name="folder")).to_contain_text("attic")
    # It speaks to the person at the page, and a call that was not confirmed has not failed.
    expect(dialog).not_to_contain_text("crib ")
    dialog.get_by_role("button", name="Do not run it").last.click()
    expect(result_of(page)).to_have_text("It did not run, because you have not confirmed it.")
    page.get_by_role("button", name="Run", exact=True).click()
    dialog.get_by_role("button", name="Run it once").click()
    expect(result_of(page)).to_contain_text("wiped attic")
    page.get_by_role("tab", name="My runs").click()
    expect(page.get_by_role("article")).to_have_count(1)


def test_a_person_who_may_approve_sees_in_the_question_what_would_run(signed_in, watch):
    watch.expect("409")
    page = signed_in
    page.goto("/ui/#/tools/wipe")
    page.get_by_label("folder").fill("cupboard")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("dialog").get_by_text("Exactly this would run").click()
    code = page.get_by_role("dialog").get_by_role("group", name="lab_tools.wipe")
    expect(code).to_contain_text('return f"wiped {folder}"')
    page.get_by_role("dialog").get_by_role("button", name="Do not run it").last.click()
    # It waits for other people, who alone are asked about it.
    page.goto("/ui/#/approvals")
    card = page.get_by_role("article").filter(has_text="cupboard")
    page.get_by_text("All", exact=True).click()
    expect(card).to_be_visible()
    with page.expect_response(lambda answer: "/approvals?state=pending" in answer.url):
        page.get_by_text("Waiting", exact=True).first.click()
    expect(card).to_have_count(0)


def test_a_tool_is_found_filled_in_and_called_by_keyboard_alone(page):
    page.goto("/ui/")
    page.get_by_label("Search tools").focus()
    page.keyboard.type("shout")
    expect(page.get_by_role("status")).to_have_text("1 tool")
    press_until_focused(page, page.get_by_role("link", name="shout"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="shout").wait_for()
    field = page.get_by_label("text")
    field.wait_for()
    press_until_focused(page, field)
    page.keyboard.type("by hand")
    press_until_focused(page, page.get_by_role("button", name="Run", exact=True))
    page.keyboard.press("Enter")
    expect(result_of(page)).to_contain_text("BY HAND")


def test_a_run_is_in_ones_own_history_and_is_run_again_by_one_click_or_changed_first(page):
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("remember me")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("REMEMBER ME")
    page.get_by_role("tab", name="Use it elsewhere").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("remember me")
    page.reload()
    page.get_by_role("tab", name="My runs").click()
    run = page.get_by_role("article").filter(has_text="remember me")
    expect(run).to_contain_text("REMEMBER ME")
    run.get_by_role("button", name="Change, then run").click()
    expect(page.get_by_label("text")).to_have_value("remember me")
    expect(result_of(page)).to_be_empty()
    page.get_by_role("tab", name="My runs").click()
    run.get_by_role("button", name="Run again").click()
    expect(result_of(page)).to_contain_text("REMEMBER ME")
    page.get_by_role("tab", name="My runs").click()
    expect(run).to_have_count(2)
    page.get_by_role("button", name="Forget my runs").click()
    expect(page.get_by_text("You did not run this tool yet.")).to_be_visible()


def test_masked_values_of_a_run_are_typed_again_before_it_runs(page):
    page.goto("/ui/#/tools/sign_in")
    page.get_by_label("user").fill("ada")
    page.get_by_label("password").fill("open sesame")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("ada: 11")
    page.reload()
    page.get_by_role("tab", name="My runs").click()
    expect(page.get_by_role("article")).not_to_contain_text("sesame")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("Masked when the run was stored, so type again: password")).to_be_visible()
    expect(page.get_by_label("user")).to_have_value("ada")
    expect(page.get_by_label("password")).to_be_focused()
    expect(page.get_by_label("password")).to_have_value("")
    expect(result_of(page)).to_be_empty()
    page.keyboard.type("swordfish")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("ada: 9")


def test_a_result_becomes_a_recorded_case_that_passes(page, server):
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("hello")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Save as example").click()
    page.get_by_label("What does it show?").fill("greets loudly")
    page.get_by_role("dialog").get_by_role("button", name="Save as example").click()
    expect(page.get_by_text("Recorded in tests/cases/shout.json")).to_be_visible()
    assert json.loads((server.project / "tests" / "cases" / "shout.json").read_text())[-1]["name"] == "greets loudly"
    assert "1 ok" in server.crib("test", "shout")


@pytest.mark.spec("S1-08")
def test_a_bundle_is_made_edited_and_deleted_and_an_edit_of_another_person_is_shown_not_lost(page, context, watch):
    watch.expect("412")
    page.goto("/ui/#/bundles")
    page.get_by_role("button", name="New bundle").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("Weather")
    page.get_by_role("textbox", name="Short name").fill("weather")
    page.get_by_role("button", name="Save").click()
    card = page.get_by_role("article", name="Weather")
    card.get_by_role("button", name="Edit Weather").click()
    page.get_by_label("Description").fill("what I think of the sky")
    other = context.new_page()
    other.goto("/ui/#/bundles")
    other.get_by_role("button", name="Edit Weather").click()
    other.get_by_label("Description").fill("what another person thinks")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("article", name="Weather")).to_contain_text("what another person thinks")
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert")
    expect(conflict).to_contain_text("what another person thinks")
    expect(conflict).to_contain_text("what I think of the sky")
    expect(page.get_by_label("Description")).to_have_value("what I think of the sky")
    page.get_by_role("button", name="Save mine over it").click()
    expect(card).to_contain_text("what I think of the sky")
    card.get_by_role("button", name="Delete Weather").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(card).to_have_count(0)


def test_what_is_typed_before_the_stored_bundle_has_arrived_stays_and_is_saved_with_it(page, server):
    server.crib("bundle", "new", "slow")
    page.goto("/ui/#/bundles")
    waiting = []
    one = re.compile("/tools/bundles/[^/?]+$")
    page.route(
        one,
        lambda route: waiting.append(route) if route.request.method == "GET" else route.continue_(),
    )
    with page.expect_request(one):
        page.get_by_role("button", name="Edit slow").click()
    page.get_by_label("Description").fill("typed at once")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    waiting[0].continue_()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("article", name="slow")).to_contain_text("typed at once")


def test_a_missing_tool_is_asked_for_by_form_followed_live_refused_by_the_gate_and_delivered(signed_in, watch):
    watch.expect("400")
    page = signed_in
    page.goto("/ui/#/requests")
    page.get_by_role("button", name="Ask for a tool").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="Name", exact=True).first.fill("word_counter")
    form.get_by_label("What should it do?").fill("Count the words of a text")
    inputs, outputs = form.get_by_role("group", name="What goes in"), form.get_by_role("group", name="What comes out")
    inputs.get_by_label("Name").fill("words")
    inputs.get_by_label("What it is").fill("What to count in")
    outputs.get_by_label("Name").fill("words")
    outputs.get_by_label("Type").select_option("integer")
    # A dialog that was closed by mistake has everything when it is opened again.
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    page.get_by_role("button", name="Ask for a tool").click()
    expect(outputs.get_by_label("Name")).to_have_value("words")
    example = form.get_by_role("group", name="Example 1")
    example.get_by_label("words (Text)").fill("one two")
    # What was typed for a field goes with it when it gets another name.
    inputs.get_by_label("Name").fill("text")
    expect(example.get_by_label("text (Text)")).to_have_value("one two")
    answer = example.get_by_label("words (Whole number)")
    answer.fill("two")
    expect(example).to_contain_text("must be: Whole number")
    answer.fill("2")
    editor = example.get_by_role("textbox", name="Example 1 as JSON")
    expect(editor).to_contain_text('"words": 2')
    editor.fill('{"input": {"text": "one two thr')
    expect(example.get_by_label("text (Text)")).to_be_disabled()
    expect(form.get_by_role("button", name="Ask for it")).to_be_disabled()
    editor.fill('{"input": {"text": "one two three"}, "output": {"words": 3}}')
    expect(answer).to_have_value("3")
    form.get_by_role("button", name="Ask for it").click()
    card = page.get_by_role("article", name="word_counter")
    expect(card).to_contain_text("Asked for")
    code = card.get_by_label("Its code")
    code.fill("def word_counter(text):\n    return {'words': 7}\n")
    card.get_by_role("button", name="Prove and publish it").click()
    expect(card.get_by_role("alert").first).to_be_visible(timeout=60_000)
    expect(code).to_have_value("def word_counter(text):\n    return {'words': 7}\n")
    code.fill("def word_counter(text):\n    return {'words': len(text.split())}\n")
    card.get_by_role("button", name="Prove and publish it").click()
    expect(card.get_by_text("Ready", exact=True).first).to_be_visible(timeout=60_000)
    card.get_by_role("link", name="Open the tool").click()
    page.get_by_label("text").fill("a b c")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text('"words": 3')


def test_a_token_is_made_works_once_copied_and_is_refused_after_it_was_revoked(signed_in, browser, server):
    page = signed_in
    page.goto("/ui/#/access")
    page.get_by_role("button", name="Make a token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Who has it").fill("the night shift")
    dialog.get_by_label("call tools").check()
    dialog.get_by_role("button", name="Make a token").click()
    secret = dialog.get_by_role("status").locator("pre").inner_text()
    dialog.get_by_role("button", name="Done").click()
    anonymous = browser.new_context(base_url=server.url)
    headers = {"authorization": f"Bearer {secret}"}
    assert anonymous.request.get("/crib/tools", headers=headers).status == 200
    page.get_by_role("button", name="Revoke the night shift").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_role("article", name="the night shift")).to_have_count(0)
    assert anonymous.request.get("/crib/tools", headers=headers).status == 401
    anonymous.close()


def test_a_link_that_is_opened_in_the_page_itself_signs_in_and_leaves_what_was_typed(page, server):
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("half a word")
    page.get_by_role("button", name="Sign in").wait_for()
    page.goto(server.link())
    page.get_by_role("button", name="Sign out").wait_for()
    expect(page.get_by_label("text")).to_have_value("half a word")
    assert page.url.endswith("#/tools/shout")


def test_the_loopback_address_alone_makes_no_token(page):
    page.goto("/ui/#/access")
    expect(page.get_by_text("Tokens are made and revoked by a person who has signed in.")).to_be_visible()
    expect(page.get_by_role("button", name="Make a token")).to_have_count(0)


def test_secrets_are_shown_by_name_and_never_by_value(page, server):
    server.crib("secret", "set", "WEATHER_KEY", stdin="s3cret-of-the-sky")
    page.goto("/ui/#/access")
    expect(page.get_by_role("region", name="Secrets")).to_contain_text("WEATHER_KEY")
    assert "s3cret-of-the-sky" not in page.content()


def test_what_keeps_a_tool_from_running_or_from_models_is_said_on_every_screen_that_shows_it(page, server, tmp_path):
    document = json.loads((server.project / "samples" / "roll-dice.json").read_text())
    request = {"method": "GET", "urlTemplate": "https://sky.example/", "auth": BEARER}
    document |= {"slug": "sky-now", "displayName": "Sky", "type": "http", "impl": request, "isEnabled": True}
    file = tmp_path / "sky-now.json"
    file.write_text(json.dumps(document))
    server.crib("bundle", "put", "samples", str(file))
    page.goto("/ui/#/health")
    obstacles = page.get_by_role("region", name="Tools that cannot run here").get_by_role("article")
    obstacle = obstacles.filter(has_text="crib secret set SKY_KEY")
    obstacle.get_by_role("link", name="sky-now").click()
    alerts = page.get_by_role("alert").filter(has_text="This tool cannot run on this server")
    expect(alerts.filter(has_text="crib secret set SKY_KEY")).to_be_visible()
    expect(alerts.filter(has_text="sky.example is not among the allowed hosts")).to_be_visible()
    page.goto("/ui/#/tools")
    page.get_by_role("combobox", name="State").click()
    page.get_by_role("option", name="Not offered to models").click()
    row = page.get_by_role("listitem").filter(has_text="fetch")
    expect(row).to_contain_text("Models are not offered this tool: it requires net.http, which is not granted")
    row.get_by_role("link").click()
    expect(page.get_by_role("alert").filter(has_text="which is not granted")).to_be_visible()


@pytest.mark.parametrize("is_signed_in", [True, False], ids=["signed in", "local"])
def test_published_resources_and_prompts_are_read_as_a_client_reads_them(page, server, is_signed_in):
    if is_signed_in:
        page.goto(server.link())
        page.get_by_role("button", name="Sign out").wait_for()
    page.goto("/ui/")
    page.get_by_role("navigation").get_by_role("link", name="Published").click()
    prompt = page.get_by_role("article", name="essay")
    expect(prompt).to_contain_text("Ask for an essay.")
    show = prompt.get_by_role("button", name="Show essay")
    expect(show).to_be_disabled()
    prompt.get_by_label("topic").fill("the sea")
    prompt.get_by_label("tone").click()
    page.get_by_role("option", name="warm").click()
    show.click()
    expect(prompt.get_by_label("What essay gives")).to_contain_text("Write about the sea, warm.")
    expect(prompt.get_by_label("What essay gives")).to_contain_text("Assistant")
    note = page.get_by_role("region", name="Resources by address").get_by_role("article", name="note")
    note.get_by_label("day").fill("today")
    note.get_by_label("day").press("Enter")
    expect(note.get_by_label("What note gives")).to_contain_text("<b>rain</b> \\u202e today")
    note.get_by_label("day").fill("never")
    note.get_by_label("day").press("Enter")
    expect(note.get_by_role("alert")).to_contain_text("there is no such day")
    page.get_by_label("Search what is published").fill("essay")
    expect(page.get_by_role("article")).to_have_count(1)


def test_activity_shows_what_was_called_and_what_failed(page):
    page.goto("/ui/#/tools/fail")
    page.get_by_label("reason").fill("on purpose")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("on purpose")
    page.goto("/ui/#/tools/manual")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("Succeeded")
    page.goto("/ui/#/activity")
    expect(page.get_by_role("region", name="By tool")).to_contain_text("host/fail")
    expect(page.get_by_role("img", name="failed").first).to_be_visible()
    colours = {
        colour_of(page, f".plot {mark}", style)
        for mark, style in ((".first", "fill"), (".failed", "fill"), (".p95", "stroke"))
    }
    assert len(colours) == 3
    assert not colours & {"none", "rgb(0, 0, 0)"}


def test_a_call_of_a_model_is_approved_by_a_person_who_sees_exactly_what_would_run(signed_in, server, context, watch):
    watch.expect("409")
    page = signed_in
    token = server.crib("token", "create", "model", "--scope", "invoke")
    headers = {"authorization": f"Bearer {token}"}
    call = {"folder": "cellar"}
    fresh = context.browser.new_context(base_url=server.url)
    assert fresh.request.post("/call/wipe", headers=headers, data=call).status == 409
    page.goto("/ui/#/approvals")
    card = page.get_by_role("article").filter(has_text="cellar")
    expect(card.get_by_role("row", name="Asked by")).to_contain_text("model")
    expect(card.get_by_role("row", name="folder")).to_contain_text("The author of the tool says: Which one.")
    expect(card).to_contain_text('"folder": "cellar"')
    card.get_by_role("button", name="Approve once").click()
    expect(card).to_contain_text("You approved wipe once.")
    assert fresh.request.post("/call/wipe", headers=headers, data=call).json()["value"] == "wiped cellar"
    fresh.close()


def test_a_decision_is_told_in_the_place_of_its_buttons_and_no_other_call_comes_there(
    signed_in, server, context, watch
):
    watch.expect("409")
    page = signed_in
    fresh = context.browser.new_context(base_url=server.url)
    for name in ("first asker", "second asker"):
        headers = {"authorization": f"Bearer {server.crib('token', 'create', name, '--scope', 'invoke')}"}
        assert fresh.request.post("/call/wipe", headers=headers, data={"folder": "pantry"}).status == 409
    expect(page.get_by_role("link", name=re.compile(r"^\d+ wait$"))).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\(\d+\) Toolcrib$"))
    page.goto("/ui/#/approvals")
    cards = page.get_by_role("article").filter(has_text="pantry")
    expect(cards).to_have_count(2)
    for place in (0, 1):
        expect(cards.nth(place)).to_contain_text("Another request here has the same tool and the same values.")
    button = cards.first.get_by_role("button", name="Refuse")
    button.scroll_into_view_if_needed()
    before = cards.nth(1).bounding_box()
    button.click()
    expect(cards.first).to_contain_text("You refused wipe.")
    expect(cards.first.locator(":focus")).to_contain_text("You refused wipe.")
    # Also once the server no longer lists it.
    with page.expect_response(lambda answer: "/approvals?state=pending" in answer.url):
        pass
    expect(cards).to_have_count(2)
    assert cards.nth(1).bounding_box() == before
    server.crib("approvals", "refuse", cards_waiting(server)[0])
    expect(cards.nth(1)).to_contain_text("Refused by user:")
    fresh.close()


def cards_waiting(server) -> list[str]:
    """The ids of the calls of the pantry that wait."""
    found = json.loads(server.crib("approvals", "list", "--json"))
    return [one["id"] for one in found if one["arguments"].get("folder") == "pantry"]


NOTIFICATION = """
window.Notification = class {
  static permission = "denied";
  constructor(title, given) { document.documentElement.dataset.told = `${document.documentElement.dataset.told ?? ""}${title}: ${given.body};`; }
};
"""


def test_the_browser_tells_of_a_new_call_that_waits_if_it_may(context, server, watch):
    watch.expect("409")
    context.add_init_script(NOTIFICATION)
    page = context.new_page()
    page.goto(server.link())
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto("/ui/#/approvals")
    fresh = context.browser.new_context(base_url=server.url)
    headers = {"authorization": f"Bearer {server.crib('token', 'create', 'asker', '--scope', 'invoke')}"}
    for permission in ("denied", "granted"):
        page.evaluate("permission => { Notification.permission = permission; }", permission)
        assert fresh.request.post("/call/wipe", headers=headers, data={"folder": f"is {permission}"}).status == 409
        expect(page.get_by_role("article").filter(has_text=f"is {permission}")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-told", "A call waits for your approval: host/wipe@1.0.0;")
    fresh.close()


BURN = '''from toolcrib import tool


@tool(confirm=True)
def burn(letters: int) -> str:
    """Burn letters."""
    # \u202e <b>not bold</b>
    return f"burnt {letters}"
'''


def test_an_approval_shows_the_very_bytes_and_an_edit_of_them_is_approved_anew(signed_in, server, context, watch):
    watch.expect("409")
    page = signed_in
    file = server.project / "tools" / "burn.py"
    file.write_text(BURN)
    token = server.crib("token", "create", "clerk", "--scope", "invoke")
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    assert fresh.request.post("/call/burn", data={"letters": 3}).status == 409
    page.goto("/ui/#/approvals")
    card = page.get_by_role("article").filter(has_text="burn")
    code = card.get_by_role("group", name="tools/burn.py")
    card.get_by_text("Exactly this would run").click()
    expect(code).to_contain_text('return f"burnt {letters}"')
    expect(code).to_contain_text("# \\u202e <b>not bold</b>")
    expect(code).to_contain_text(hashlib.sha256(BURN.encode()).hexdigest())
    card.get_by_role("button", name="Approve once").click()
    expect(card).to_contain_text("You approved burn once.")
    changed = BURN.replace("burnt", "kept")
    file.write_text(changed)
    assert fresh.request.post("/call/burn", data={"letters": 3}).status == 409
    expect(card).to_have_count(2)
    card.last.get_by_text("Exactly this would run").click()
    expect(code.last).to_contain_text('return f"kept {letters}"')
    card.last.get_by_role("button", name="Approve once").click()
    expect(card.last).to_contain_text("You approved burn once.")
    assert fresh.request.post("/call/burn", data={"letters": 3}).json()["value"] == "kept 3"
    fresh.close()


def test_an_approval_shows_requests_as_they_will_be_sent_with_secrets_by_name(signed_in, server, context, watch):
    watch.expect("409")
    page = signed_in
    server.crib("secret", "set", "ROOMS", stdin="sk-never-shown-1\n")
    token = server.crib("token", "create", "traveller", "--scope", "invoke")
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    assert fresh.request.post("/call/book_room", data={"city": "New York", "guest": "Ann"}).status == 409
    page.goto("/ui/#/approvals")
    card = page.get_by_role("article").filter(has_text="book-room")
    card.get_by_text("Exactly this would run").click()
    # A tool that says nothing of its effects is not said to have none.
    expect(card.get_by_role("row", name="What it may change")).to_contain_text("not declared")
    first = card.get_by_role("group", name="POST https://rooms.test/v1/New%20York")
    expect(first.get_by_role("row", name="header Authorization")).to_contain_text("Bearer {secret:ROOMS}")
    expect(first).to_contain_text('{"guest": "Ann"}')
    second = card.get_by_role("group", name="POST https://rooms.test/pay/{room.id}")
    expect(second).to_contain_text("Template")
    expect(second).to_contain_text("comes from the answers of earlier requests")
    expect(page.locator("body")).not_to_contain_text("sk-never-shown-1")
    card.get_by_role("button", name="Refuse").click()
    expect(card).to_contain_text("You refused book_room.")
    fresh.close()


def press_until_focused(page: Page, wanted: Locator, key: str = "Tab", most: int = 60) -> None:
    """Go on by keyboard until a control has the focus."""
    for _ in range(most):
        if wanted.evaluate("control => control === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError("the control cannot be reached by keyboard")


def test_a_person_goes_to_the_approvals_and_decides_by_keyboard_alone(signed_in, server, context, watch):
    watch.expect("409")
    page = signed_in
    token = server.crib("token", "create", "late model", "--scope", "invoke")
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    call = {"folder": "larder \u202e gpj"}
    assert fresh.request.post("/call/wipe", data=call).status == 409
    expect(page.get_by_role("main")).to_be_focused()
    press_until_focused(page, page.get_by_role("navigation").get_by_role("link", name="Approvals"), "Shift+Tab")
    page.keyboard.press("Enter")
    card = page.get_by_role("article").filter(has_text="larder")
    card.get_by_text("What the approval is bound to").click()
    # What cannot be seen is written out in both places, so that nothing looks like something else.
    expect(card.get_by_role("row", name="folder")).to_contain_text("larder \\u202e gpj")
    expect(card).to_contain_text(r'"folder": "larder \\u202e gpj"')
    expect(card.get_by_role("row", name="Digest")).to_contain_text(re.compile("[0-9a-f]{32}"))
    press_until_focused(page, card.get_by_role("button", name="Approve once"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("You approved wipe once.")
    assert fresh.request.post("/call/wipe", data=call).ok
    fresh.close()


def test_a_bundle_is_exported_as_a_file_and_imported_under_another_name_disabled(page, watch, tmp_path):
    watch.expect("409")
    page.goto("/ui/#/bundles")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export samples").click()
    assert saved.value.suggested_filename == "samples.zip"
    archive = tmp_path / "samples.zip"
    saved.value.save_as(archive)
    page.get_by_role("button", name="Import a bundle").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").set_input_files(archive)
    dialog.get_by_role("button", name="Import a bundle").click()
    expect(dialog.get_by_role("alert")).to_contain_text("nothing was imported")
    dialog.get_by_label("Short name").fill("copies")
    dialog.get_by_role("button", name="Import a bundle").click()
    card = page.get_by_role("article").filter(has_text="copies")
    expect(card.get_by_role("switch")).not_to_be_checked()


def test_a_file_that_is_no_archive_is_refused_with_the_reason_and_stays_chosen(page, watch, tmp_path):
    watch.expect("400")
    forged = tmp_path / "forged.zip"
    forged.write_bytes(b"PK\x03\x04 not really")
    page.goto("/ui/#/bundles")
    page.get_by_role("button", name="Import a bundle").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").set_input_files(forged)
    dialog.get_by_role("button", name="Import a bundle").click()
    expect(dialog.get_by_role("alert")).to_contain_text("does not end as a ZIP archive does")
    expect(dialog).to_contain_text("forged.zip")


def test_documentation_is_laid_out_and_its_markup_is_text(page):
    page.goto("/ui/#/tools/manual")
    page.get_by_role("tab", name="About").click()
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_role("heading", name="Before you start")).to_be_visible()
    expect(panel.get_by_role("listitem").filter(has_text="read this first")).to_be_visible()
    expect(panel.get_by_role("link", name="your bank")).to_have_attribute("href", "https://elsewhere.example/x")
    expect(panel).to_contain_text("your bank (elsewhere.example)")
    panel.get_by_text("press here").click()
    expect(page).to_have_title("Toolcrib")


def test_a_running_call_can_be_stopped_and_what_was_typed_stays(page, watch):
    watch.expect("ERR_ABORTED")
    page.goto("/ui/#/tools/linger")
    page.get_by_label("note").fill("until I say so")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    expect(result_of(page)).to_contain_text("You stopped the call")
    expect(page.get_by_label("note")).to_have_value("until I say so")


def test_progress_and_chunks_are_shown_as_text_while_the_tool_runs_and_stay_after_a_stop(page, watch):
    watch.expect("ERR_ABORTED")
    page.goto("/ui/#/tools/pour")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("1 / 4 a quarter <b>full</b>")
    expect(result_of(page)).to_contain_text("first drops \\x1b[31m<b>red</b>")
    expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("aria-valuenow", "25")
    page.get_by_role("button", name="Stop").click()
    expect(result_of(page)).to_contain_text("You stopped the call")
    expect(result_of(page)).to_contain_text("first drops")


def test_a_list_that_could_not_be_read_is_read_again_at_a_click(page, watch):
    watch.expect("ERR_FAILED")
    page.route("**/tools/bundles?*", lambda route: route.abort(), times=4)
    page.goto("/ui/#/bundles")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The server cannot be reached")
    page.unroute("**/tools/bundles?*")
    alert.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("article", name="Built-in tools")).to_be_visible()


@pytest.mark.parametrize("context", [{"width": 1440}, {"width": 360}], indirect=True, ids=["wide", "narrow"])
def test_two_versions_are_compared_line_by_line_and_side_by_side_where_there_is_room(page, server, tmp_path, context):
    document = json.loads((server.project / "samples" / "roll-dice.json").read_text())
    document |= {"version": "v2", "description": "Roll better dice"}
    changed = tmp_path / "roll-dice.json"
    changed.write_text(json.dumps(document))
    server.crib("bundle", "put", "samples", str(changed))
    page.goto("/ui/#/tools/samples%2Froll-dice%40v2")
    page.get_by_role("tab", name="Versions").click()
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_label("Compare with")).to_have_value("samples/roll-dice@v1")
    expect(panel.locator("[data-kind=added]").filter(has_text="Roll better dice")).to_be_visible()
    removed = panel.locator("[data-kind=removed]").filter(has_text='"version": "v1"')
    added = panel.locator("[data-kind=added]").filter(has_text='"version": "v2"')
    expect(removed.locator("del")).to_have_text("v1")
    expect(added.locator("ins")).to_have_text("v2")
    before, after = removed.bounding_box(), added.bounding_box()
    if page.viewport_size["width"] > 1000:
        assert before["y"] == after["y"]
        assert before["x"] + before["width"] <= after["x"]
    else:
        assert before["x"] == after["x"]
        assert before["y"] < after["y"]
    behind = {colour_of(page, f"[data-kind={kind}]", "backgroundColor") for kind in ("same", "added", "removed")}
    assert len(behind) == 3


@pytest.mark.spec("S1-08")
def test_a_new_version_of_a_stored_tool_is_written_and_deleted(page, server, watch):
    watch.expect("400", "404")
    page.goto("/ui/#/tools/samples%2Froll-dice%40v1")
    page.get_by_role("tab", name="About").click()
    page.get_by_role("button", name="Write a new version").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New version").fill("v9")
    document = dialog.get_by_role("textbox", name="Document")
    written = json.loads((server.project / "samples" / "roll-dice.json").read_text()) | {"version": "v9"}
    document.fill(json.dumps(written | {"type": "no such type"}))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("type")
    document.fill(json.dumps(written | {"description": "Roll the ninth dice"}))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("Roll the ninth dice").first).to_be_visible()
    page.get_by_role("tab", name="About").click()
    page.get_by_role("button", name="Delete this version").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_label("Search tools")).to_be_visible()
    page.goto("/ui/#/tools/samples%2Froll-dice%40v9")
    expect(page.get_by_role("alert")).to_contain_text("roll-dice@v9")


def test_a_tool_of_code_is_neither_rewritten_nor_deleted_here(page):
    page.goto("/ui/#/tools/shout")
    page.get_by_role("tab", name="About").click()
    expect(page.get_by_role("rowheader", name="Comes from")).to_be_visible()
    expect(page.get_by_text("This tool is code of the host program. It is edited in lab_tools.py")).to_be_visible()
    expect(page.get_by_role("button", name="Delete this version")).to_have_count(0)


@pytest.mark.parametrize("context", [{"scheme": "dark"}, {"scheme": "light"}], indirect=True, ids=["dark", "light"])
def test_the_editor_has_the_colours_of_the_page(page):
    page.goto("/ui/#/tools/shout")
    page.get_by_role("textbox", name="Arguments as JSON").fill('{"text": "x"}')
    behind, name = page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle([...document.querySelectorAll('.cm-line span')].find((span) => span.textContent === '\"text\"')).color]"
    )
    assert page.evaluate("() => getComputedStyle(document.querySelector('.editor')).backgroundColor") == behind
    assert contrast(behind, name) >= 4.5
    assert name != colour_of(page, ".cm-content", "color")


def test_the_list_is_narrowed_by_each_filter_and_says_so_when_nothing_is_left(page):
    page.goto("/ui/#/tools")
    rows = page.get_by_role("list", name="Tools").get_by_role("listitem")
    expect(rows.first).to_be_visible()
    for title, choice, kept, gone in (
        ("Bundle", "samples", "roll-dice", "shout"),
        ("Tag", "letters", "shout", "fail"),
        ("Side effects", "changes something", "wipe", "shout"),
        ("State", "Disabled", None, "shout"),
    ):
        page.get_by_role("combobox", name=title).click()
        page.get_by_role("option", name=choice, exact=True).click()
        expect(rows.filter(has_text=gone)).to_have_count(0)
        if kept:
            expect(rows.filter(has_text=kept).first).to_be_visible()
        page.get_by_role("combobox", name=title).click()
        page.get_by_role("option", name="Any", exact=True).click()
        expect(page.get_by_role("option")).to_have_count(0)
    page.get_by_label("Search tools").fill("xyzzyx")
    expect(page.get_by_text("No tool matches.")).to_be_visible()


def test_form_and_json_stand_side_by_side_and_each_follows_the_other(page):
    page.goto("/ui/#/tools/shout")
    field, editor = page.get_by_label("text"), page.get_by_role("textbox", name="Arguments as JSON")
    field.fill("from the form")
    expect(editor).to_contain_text('"text": "from the form"')
    editor.fill('{"text": "from the JSON", "times": 2}')
    expect(field).to_have_value("from the JSON")
    expect(page.get_by_label("times")).to_have_value("2")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("FROM THE JSON FROM THE JSON")


def test_json_that_cannot_be_read_yet_is_kept_and_the_form_waits_for_it(page):
    page.goto("/ui/#/tools/shout")
    field, editor = page.get_by_label("text"), page.get_by_role("textbox", name="Arguments as JSON")
    field.fill("kept")
    editor.fill('{"text": "half a tho')
    expect(page.get_by_text("This is not valid JSON")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    expect(field).to_be_disabled()
    page.get_by_role("tab", name="About").click()
    page.get_by_role("tab", name="Try it").click()
    expect(editor).to_have_text('{"text": "half a tho', use_inner_text=True)
    page.get_by_role("button", name="Go on from the form").click()
    expect(editor).to_contain_text('"text": "kept"')
    expect(field).to_be_enabled()


@pytest.mark.parametrize("context", [{"width": 360}], indirect=True, ids=["narrow"])
def test_on_a_narrow_page_form_and_json_take_turns(page):
    page.goto("/ui/#/tools/shout")
    page.get_by_label("text").fill("small")
    expect(page.get_by_role("textbox", name="Arguments as JSON")).to_have_count(0)
    page.get_by_text("JSON", exact=True).click()
    editor = page.get_by_role("textbox", name="Arguments as JSON")
    expect(editor).to_contain_text('"text": "small"')
    editor.fill('{"text": "broken')
    page.get_by_text("Form", exact=True).click()
    expect(page.get_by_text("The JSON cannot be read yet.")).to_be_visible()
    page.get_by_text("JSON", exact=True).click()
    expect(editor).to_have_text('{"text": "broken', use_inner_text=True)


def test_options_of_a_union_have_names_and_what_is_wrong_is_said_at_the_field(page):
    page.goto("/ui/#/tools/choices")
    page.get_by_role("combobox", name="to").click()
    expect(page.get_by_role("option")).to_have_text(["mail", "Phone", "Nothing"])
    page.get_by_role("option", name="Phone").click()
    page.get_by_label("number").fill("7")
    page.get_by_label("number").fill("")
    expect(page.get_by_text("is required").first).to_be_visible()
    page.get_by_role("combobox", name="to").click()
    page.get_by_role("option", name="mail").click()
    page.get_by_label("address").fill("a")
    expect(page.get_by_text("must have at least 3 characters")).to_be_visible()
    page.get_by_label("address").fill("a@b")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text('"by": "mail"')


def test_every_check_of_a_call_is_a_step_of_the_ladder_with_its_reason_and_cure(page):
    page.goto("/ui/#/tools/wipe")
    page.get_by_label("folder").fill("attic")
    page.get_by_role("button", name="What would happen?").click()
    steps = page.locator(".ladder > li")
    expect(page.get_by_text("The call would not run.")).to_be_visible()
    expect(steps.filter(has_text="The arguments fit: passes")).to_have_attribute("data-decision", "allow")
    asked = steps.filter(has_text="A person confirms: asks a person")
    expect(asked).to_contain_text("wipe needs confirmation")
    expect(asked).to_have_attribute("data-decision", "confirm")
    page.get_by_role("textbox", name="Arguments as JSON").fill("{}")
    page.get_by_role("button", name="What would happen?").click()
    expect(steps.filter(has_text="The arguments fit: refuses")).to_contain_text("folder")
    expect(steps.filter(has_text="A person confirms: not reached")).to_be_visible()


def test_intents_of_a_result_are_shown_as_text_and_nothing_is_done(page):
    page.goto("/ui/#/tools/farewell")
    page.get_by_role("button", name="Run", exact=True).click()
    intent = result_of(page).get_by_role("article", name="END_SESSION")
    expect(intent.get_by_role("row", name="after")).to_contain_text("reply")
    expect(intent).to_contain_text("<b>now</b>")


def test_a_person_refuses_a_call_and_the_decision_stays_to_be_seen(signed_in, server, context, watch):
    watch.expect("409")
    page = signed_in
    token = server.crib("token", "create", "hasty model", "--scope", "invoke")
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    wanted = {"folder": "library"}
    assert fresh.request.post("/call/wipe", data=wanted).status == 409
    page.goto("/ui/#/approvals")
    card = page.get_by_role("article").filter(has_text="library")
    card.get_by_label("Note").fill("not the books")
    card.get_by_role("button", name="Refuse").click()
    expect(card).to_contain_text("You refused wipe.")
    page.get_by_text("All", exact=True).click()
    expect(card).to_contain_text("Refused by A person at this page")
    expect(card).to_contain_text("not the books")
    assert "refused" in fresh.request.post("/call/wipe", data=wanted).text()
    fresh.close()


def test_activity_plots_errors_by_kind_and_costs_by_tool_and_caller(signed_in, server, context):
    page = signed_in
    token = server.crib("token", "create", "the painter", "--scope", "invoke")
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    for subject in ("a dog", "a cat"):
        assert fresh.request.post("/call/paint", data={"subject": subject}).ok
    assert not fresh.request.post("/call/paint", data={}).ok
    fresh.close()
    page.goto("/ui/#/activity")
    costs = page.get_by_role("region", name="Cost in EUR")
    expect(costs.get_by_role("listitem").filter(has_text="host/paint")).to_contain_text("0.5 EUR")
    bar = costs.get_by_role("listitem").filter(has_text="the painter").locator(".share rect.first")
    assert bar.bounding_box()["width"] > 100
    errors = page.get_by_role("region", name="Errors over time")
    expect(errors.get_by_role("img")).to_have_attribute("aria-label", re.compile("The arguments do not fit [0-9]"))
    expect(errors.locator("rect.error0").first).to_be_attached()
    expect(page.get_by_role("region", name="How long calls took").locator(".p99 circle").first).to_be_attached()
    expect(
        page.get_by_role("region", name="By caller").get_by_role("row").filter(has_text="the painter")
    ).to_contain_text("3")


def test_a_quota_is_given_with_a_token_and_what_is_used_of_it_is_shown(signed_in, context, server):
    page = signed_in
    page.goto("/ui/#/access")
    page.get_by_role("button", name="Make a token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Who has it").fill("the intern")
    dialog.get_by_label("call tools").check()
    dialog.get_by_label("Calls", exact=True).fill("4")
    dialog.get_by_label("In each").select_option("hour")
    dialog.get_by_role("button", name="Make a token").click()
    token = dialog.get_by_role("status").locator("pre").inner_text()
    dialog.get_by_role("button", name="Done").click()
    fresh = context.browser.new_context(base_url=server.url, extra_http_headers={"authorization": f"Bearer {token}"})
    assert fresh.request.post("/call/shout", data={"text": "x"}).ok
    fresh.close()
    page.reload()
    expect(page.get_by_role("article", name="the intern")).to_contain_text("1 of 4 calls used per hour")


def colour_of(page: Page, selector: str, style: str) -> str:
    """A computed colour of the first element that matches."""
    return page.locator(selector).first.evaluate("(found, style) => getComputedStyle(found)[style]", style)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG defines it."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
