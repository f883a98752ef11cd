"""The recipe builder by hand: an HTTP tool of many shapes of APIs, with credentials and pages, and several requests in one tool."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from browser import Server, served
from playwright.sync_api import Page, expect
from tests.interfaces.web.conftest import make_project
from tests.interfaces.web.recipe_page import field_of, give, paste, result_of, save, try_it
from tests.interfaces.web.services import services

pytestmark = pytest.mark.page


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    with services() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, api: str) -> Iterator[Server]:
    """A server whose HTTP tools may reach the services, with the secrets that they ask for."""
    project = make_project(tmp_path_factory.mktemp("recipes"))
    settings = project / "toolcrib.toml"
    settings.write_text(
        settings.read_text()
        + f'\n[http_tools]\nhosts = ["{api}"]\n[egress]\nprivate = ["{api}"]\n[secrets]\nfile = "secrets.env"\n'
    )
    secrets = project / "secrets.env"
    secrets.write_text("AUTHORIZATION=s3cret-value\nPASSWORD=pw\nSERVICE_KEY=k3y\n")
    secrets.chmod(0o600)
    with served(project) as found:
        yield found


@dataclass(frozen=True)
class Shape:
    """One API: what a person pastes, clicks and names, what the trial is given, and what is kept."""

    paste: str
    inputs: dict[str, str] = field(default_factory=dict)
    keep: str = ""
    each: bool = False
    tried: dict[str, str] = field(default_factory=dict)
    result: str = ""


SHAPES = {
    "weather": Shape("http://{api}/weather?q=Oslo", {"q = Oslo": "city"}, "text: sunny", result="sunny"),
    "issue tracker": Shape("http://{api}/issues/12", {"12": "number"}, "title: Door squeaks", result="Door squeaks"),
    "search with pages": Shape(
        "http://{api}/search?q=boats&page=2",
        {"q = boats": "words", "page = 2": "page"},
        "title: boats 2.1",
        each=True,
        result="boats 2.2",
    ),
    "form post": Shape(
        "curl http://{api}/login -d 'user=ada&lang=en'", {"user = ada": "user"}, "welcome: ada", result="ada"
    ),
    "XML": Shape("http://{api}/rates/NOK", {"NOK": "currency"}, "rate: 11.25", result="11.25"),
    "token in a header": Shape(
        "curl -H 'Authorization: Bearer pasted-key' http://{api}/account", {}, "owner: Ada", result="Ada"
    ),
    "nested lists": Shape("http://{api}/team", {}, "name: Ada", each=True, result="Bo"),
    "JSON post": Shape(
        """curl http://{api}/orders --json '{{"item": "lamp", "count": 2, "gift": true}}'""",
        {"item = lamp": "item", "count = 2": "count", "gift = true": "gift"},
        "count: 2",
        result="2",
    ),
    "plain text": Shape("http://{api}/quote", {}, "", result="Well begun"),
    "a bare list": Shape("http://{api}/list", {}, "1: green", result="green"),
    "odd keys and letters": Shape(
        "http://{api}/translate?text=gr%C3%BC%C3%9Fe%20%26&to=de",
        {"text = grüße &": "text"},
        "text-de: grüße & (de)",
        result="grüße & (de)",
    ),
    "an address without a scheme": Shape("curl {api}/parcels/7", {"7": "parcel"}, "place: Bergen", result="Bergen"),
}


@pytest.mark.spec("S1-96")
@pytest.mark.parametrize("name", SHAPES)
def test_a_person_makes_a_tool_of_an_api_without_json(page: Page, api: str, name: str) -> None:
    shape = SHAPES[name]
    page.goto("/ui/#/recipes")
    text = shape.paste.format(api=api)
    paste(page, text.replace("curl 127", "curl http://127") if name == "an address without a scheme" else text)
    for shown, called in shape.inputs.items():
        give(page, shown, called)
    page.get_by_role("button", name="Try it").click()
    expect(result_of(page)).to_contain_text("Succeeded")
    if shape.keep:
        page.get_by_role("button", name=shape.keep, exact=True).first.click()
    if shape.each:
        page.get_by_role("button", name="Of every item of the list").click()
    save(page, f"Recipe {name}")
    for shown, called in shape.inputs.items():
        example = shown.rpartition(" = ")[2]
        control = field_of(page, called)
        if control.get_attribute("type") == "checkbox":
            control.check()
        else:
            control.fill(example)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("Succeeded")
    expect(result_of(page)).to_contain_text(shape.result)


# The type that a person chooses, the address, and what they write into the fields of its form.
CREDENTIALS = {
    "bearer": ("account", {"Secret with the token": "AUTHORIZATION"}),
    "basic": ("basic", {"Name": "ada", "Secret with the password": "PASSWORD"}),
    "api_key": ("keyed", {"Secret with the key": "SERVICE_KEY", "Name of the header": "X-Maps-Key"}),
    "hmac": ("hook", {"Secret with the key": "SERVICE_KEY"}),
    "http_signature": (
        "message",
        {"Secret with the key": "SERVICE_KEY", "Id of the key": "crib", "Algorithm": "hmac-sha256"},
    ),
    "aws_sigv4": (
        "bucket",
        {
            "Secret with the access key id": "SERVICE_KEY",
            "Secret with the secret access key": "SERVICE_KEY",
            "Region": "eu-north-1",
            "Service, such": "s3",
        },
    ),
    "oauth2_client": (
        "staff",
        {
            "Address that gives tokens": "http://{api}/tokens",
            "Id of the program": "crib",
            "Secret with the client secret": "SERVICE_KEY",
        },
    ),
    "oauth2_refresh": (
        "staff",
        {
            "Address that gives tokens": "http://{api}/tokens",
            "Id of the program": "crib",
            "Secret with the refresh token": "SERVICE_KEY",
        },
    ),
}


@pytest.mark.spec("S1-96")
@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_recipe_with_credentials_is_filled_in_tried_saved_and_called(page: Page, api: str, kind: str) -> None:
    path, fields = CREDENTIALS[kind]
    page.goto("/ui/#/recipes")
    paste(page, f"http://{api}/{path}")
    page.get_by_text("Sign-in of the service").click()
    page.get_by_label("How does the service know who asks?").select_option(kind)
    for label, value in fields.items():
        control = page.get_by_label(label).filter(visible=True).first
        if control.evaluate("(element) => element.tagName") == "SELECT":
            control.select_option(value)
        else:
            control.fill(value.format(api=api))
            page.keyboard.press("Escape")
    try_it(page)
    save(page, f"With {kind}")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("Succeeded")


def test_a_secret_is_chosen_by_its_name_and_one_that_is_missing_says_how_it_is_stored(page: Page, api: str) -> None:
    page.goto("/ui/#/recipes")
    paste(page, f"http://{api}/account")
    page.get_by_text("Sign-in of the service").click()
    page.get_by_label("How does the service know who asks?").select_option("bearer")
    expect(page.get_by_text("Secret with the token is needed.")).to_be_visible()
    secret = page.get_by_role("combobox", name="Secret with the token")
    secret.fill("no name")
    expect(page.get_by_text("Letters, digits and _; it begins with a letter.")).to_be_visible()
    secret.fill("OTHER")
    expect(page.get_by_text("crib secret set OTHER")).to_be_visible()
    secret.fill("AUTH")
    page.get_by_role("option", name="AUTHORIZATION").click()
    expect(page.get_by_text("A secret of this name is stored.")).to_be_visible()


@pytest.mark.spec("S1-96")
@pytest.mark.parametrize(("kind", "parameter"), [("page", "page"), ("cursor", "after")])
def test_a_recipe_reads_all_pages_of_an_answer(page: Page, api: str, kind: str, parameter: str) -> None:
    page.goto("/ui/#/recipes")
    paste(page, f"http://{api}/log?page=1" if kind == "page" else f"http://{api}/log")
    try_it(page)
    page.get_by_text("Pages: One page only").click()
    page.get_by_label("Does the answer come in pages?").select_option(kind)
    if kind == "cursor":
        page.get_by_label("Name of the parameter").fill(parameter)
        page.get_by_role("button", name="Choose: Where the next page stands").click()
        page.get_by_role("button", name="more: 2").first.click()
    page.get_by_role("button", name="Choose: Where the list of items stands").click()
    page.get_by_role("button", name="entries: [2]").first.click()
    page.get_by_role("button", name="line: entry 1").click()
    page.get_by_role("button", name="Of every item of the list").click()
    try_it(page)
    expect(result_of(page)).to_contain_text("entry 5")
    save(page, f"Log by {kind}")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("entry 5")
    expect(result_of(page)).not_to_contain_text('"line"')


@pytest.mark.spec("S1-96")
def test_headers_and_content_are_added_by_form(page: Page, api: str) -> None:
    page.goto("/ui/#/recipes")
    paste(page, f"http://{api}/orders")
    page.get_by_text("Method, content and further parts").click()
    for where, name, value in (("header", "X-Note", "hi"), ("body", "item", "lamp"), ("body", "count", "2")):
        page.get_by_label("Where?").select_option(where)
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Value", exact=True).fill(value)
        page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("Where?").select_option("body")
    page.get_by_label("Name", exact=True).fill("gift")
    page.get_by_label("Value", exact=True).fill("true")
    page.keyboard.press("Enter")
    give(page, "count = 2", "count")
    page.get_by_role("button", name="X-Note = hi").click()
    page.get_by_role("button", name="Remove it").click()
    try_it(page)
    save(page, "Order by form")
    field_of(page, "count").fill("3")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text('"count": 3')


@pytest.mark.spec("S1-96")
def test_an_output_of_one_request_goes_into_a_slot_of_the_next(page: Page, api: str) -> None:
    page.goto("/ui/#/recipes")
    paste(page, f"""curl http://{api}/orders --json '{{"item": "lamp", "count": 1, "gift": false}}'""")
    give(page, "item = lamp", "item")
    page.get_by_role("button", name="Try it").click()
    expect(result_of(page)).to_contain_text("Succeeded")
    paste(page, f"http://{api}/parcels/1")
    page.get_by_role("button", name="1", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("From an earlier answer").click()
    dialog.get_by_role("combobox", name="Which value?").fill("parcel")
    page.get_by_role("option", name="order.parcel.id").click()
    dialog.get_by_role("button", name="Use this").click()
    page.get_by_text("Canvas", exact=True).click()
    expect(page.locator(".react-flow__edge")).to_have_count(1)
    page.get_by_text("List", exact=True).click()
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("button", name="place: Bergen").click()
    save(page, "Order and track")
    field_of(page, "item").fill("lamp")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("Bergen")


@pytest.mark.spec("S1-96")
def test_an_example_answer_may_come_before_the_request_that_gives_it(page: Page, api: str) -> None:
    page.goto("/ui/#/recipes")
    paste(page, '{"current": {"condition": {"text": "sunny"}}}')
    expect(page.get_by_role("status")).to_contain_text("Now paste the URL")
    paste(page, f"http://{api}/weather?q=Oslo")
    page.get_by_role("button", name="text: sunny", exact=True).click()
    save(page, "Sky")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("sunny")


@pytest.mark.spec("S1-96")
def test_a_recipe_is_made_with_the_keyboard_alone(page: Page, api: str) -> None:
    page.goto("/ui/#/recipes")
    page.locator("textarea").first.focus()
    page.keyboard.insert_text(f"http://{api}/weather?q=Oslo")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    part = page.get_by_role("button", name="q = Oslo")
    part.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("radio", name="Always the same").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("city")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="q = {city}")).to_be_focused()
    page.get_by_role("button", name="Try it").focus()
    page.keyboard.press("Enter")
    expect(result_of(page)).to_contain_text("sunny")


def test_a_secret_that_was_pasted_stands_neither_in_the_document_nor_in_what_is_stored(
    page: Page, api: str, server: Server
) -> None:
    page.goto("/ui/#/recipes")
    paste(page, f"curl -H 'Authorization: Bearer pasted-key' http://{api}/account")
    save(page, "Account")
    stored = "".join(file.read_text() for file in Path(server.project, ".toolcrib", "bundles").rglob("*.json"))
    assert "pasted-key" not in stored
    assert "AUTHORIZATION" in stored


@pytest.mark.spec("S1-08")
def test_a_tool_of_a_function_of_the_host_program_is_made_by_form_and_called(page: Page) -> None:
    page.goto("/ui/#/recipes")
    page.get_by_text("A function", exact=True).click()
    expect(page.get_by_text("Choose a function.")).to_be_visible()
    page.get_by_label("Function", exact=True).select_option("samples.roll")
    for name in ("sides", "count"):
        page.get_by_label("Name of another one").fill(name)
        page.keyboard.press("Enter")
        given = page.get_by_role("region", name=name)
        given.get_by_role("combobox", name="Kind").click()
        page.get_by_role("option", name="Whole number").click()
    save(page, "Roll by hand")
    field_of(page, "sides").fill("1")
    field_of(page, "count").fill("3")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("Succeeded")
    expect(result_of(page)).to_contain_text("1,")


@pytest.mark.spec("S1-08")
def test_a_tool_that_asks_a_database_is_made_by_form_and_called(page: Page, server: Server) -> None:
    with closing(sqlite3.connect(server.project / "shop.sqlite")) as shop:
        shop.executescript(
            "CREATE TABLE customers (name TEXT, city TEXT); INSERT INTO customers VALUES ('Ada', 'Oslo');"
        )
    page.goto("/ui/#/recipes")
    page.get_by_text("A database", exact=True).click()
    expect(page.get_by_text("Name the database.")).to_be_visible()
    page.get_by_label("Database", exact=True).fill("shop.sqlite")
    page.get_by_label("Statement", exact=True).fill("SELECT name FROM customers WHERE city = :city")
    expect(page.get_by_role("region", name="city")).to_be_visible()
    page.get_by_label("What comes back?").select_option("value")
    save(page, "Customer of a city")
    field_of(page, "city").fill("Oslo")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("Ada")


@pytest.mark.spec("S1-96")
def test_a_stored_question_to_a_database_is_changed_in_the_builder(page: Page, server: Server, tmp_path) -> None:
    with closing(sqlite3.connect(server.project / "stock.sqlite")) as stock:
        stock.executescript("CREATE TABLE stock (item TEXT, pieces INT); INSERT INTO stock VALUES ('lamp', 3);")
    document = {
        "schemaVersion": "toolcrib-1",
        "slug": "stock-of",
        "version": "v1",
        "displayName": "Stock of",
        "description": "How many there are",
        "type": "sql",
        "isEnabled": True,
        "argSchema": {
            "type": "object",
            "properties": {"item": {"type": "string", "minLength": 1}},
            "required": ["item"],
            "additionalProperties": False,
        },
        "outputSchema": {},
        "impl": {"database": "stock.sqlite", "statement": "SELECT pieces FROM stock WHERE item = :item", "maxRows": 5},
    }
    file = tmp_path / "stock-of.json"
    file.write_text(json.dumps(document))
    server.crib("bundle", "new", "stock")
    server.crib("bundle", "put", "stock", str(file))
    page.goto("/ui/#/tools/stock%2Fstock-of%40v1")
    page.get_by_role("tab", name="About").click()
    page.get_by_role("link", name="Change it in the builder").click()
    kept = page.get_by_role("alert").filter(has_text="They stay as they are written")
    for place in ("impl.maxRows", "item.minLength"):
        expect(kept).to_contain_text(place)
    statement = page.get_by_label("Statement", exact=True)
    expect(statement).to_have_value("SELECT pieces FROM stock WHERE item = :item")
    statement.fill("SELECT pieces FROM stock WHERE item = :item AND pieces >= :least")
    least = page.get_by_role("region", name="least")
    least.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="Whole number").click()
    page.get_by_role("button", name="Save as a new version").click()
    page.get_by_role("link", name="Saved. Open stock-of v2").click()
    before, after = (stored(page, "stock-of", version, "stock") for version in ("v1", "v2"))
    assert after["impl"] == {**before["impl"], "statement": before["impl"]["statement"] + " AND pieces >= :least"}
    assert after["argSchema"]["properties"]["item"] == {"type": "string", "minLength": 1}
    field_of(page, "item").fill("lamp")
    field_of(page, "least").fill("2")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text('"pieces": 3')


def test_a_host_that_is_not_allowed_is_refused_with_the_reason(page: Page, watch) -> None:
    watch.expect("Failed to load resource")
    page.goto("/ui/#/recipes")
    paste(page, "https://example.com/a")
    page.get_by_role("button", name="Try it").click()
    expect(result_of(page)).to_contain_text("Host not allowed")


def written_by_hand(api: str) -> dict[str, object]:
    """A tool that says more than the builder has fields for."""
    return {
        "schemaVersion": "toolcrib-1",
        "slug": "by-hand",
        "version": "v1",
        "displayName": "By hand",
        "description": "Tell the weather.\nOf a city.",
        "type": "http",
        "isEnabled": True,
        "tags": ["sky"],
        "argSchema": {
            "type": "object",
            "properties": {"city": {"type": "string", "minLength": 2}, "note": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "string", "maxLength": 400},
        "impl": {
            "method": "GET",
            "urlTemplate": f"http://{api}/weather",
            "query": {"q": "${city}", "lang": "x-${note}"},
            "successCodes": [200, 203],
            "extractExpr": "$.current.condition.text",
        },
    }


def stored(page: Page, slug: str, version: str, bundle: str = "kept") -> dict[str, Any]:
    """The document of a stored version, as far as a person wrote it."""
    listed = page.request.get("/tools/bundles?includeDisabled=true").json()["bundles"]
    [bundle_id] = [one["bundleID"] for one in listed if one["slug"] == bundle]
    found = page.request.get(f"/tools/bundles/{bundle_id}/tools/{slug}/version/{version}").json()
    return {key: found[key] for key in written_by_hand("") if key not in ("slug", "version")}


@pytest.mark.spec("S1-96")
def test_a_stored_tool_is_changed_in_the_builder_and_what_has_no_field_there_is_named_and_kept(
    page, api, server, tmp_path
):
    document = written_by_hand(api)
    file = tmp_path / "by-hand.json"
    file.write_text(json.dumps(document))
    server.crib("bundle", "new", "kept")
    server.crib("bundle", "put", "kept", str(file))
    page.goto("/ui/#/tools/kept%2Fby-hand%40v1")
    page.get_by_role("tab", name="About").click()
    page.get_by_role("link", name="Change it in the builder").click()
    kept = page.get_by_role("alert").filter(has_text="They stay as they are written")
    for place in ("city.minLength", "impl.successCodes", "x-${note}"):
        expect(kept).to_contain_text(place)
    give(page, "q = {city}", "place")
    page.get_by_label("place for the trial").fill("Oslo")
    try_it(page)
    page.get_by_role("button", name="Save as a new version").click()
    page.get_by_role("link", name="Saved. Open by-hand v2").click()
    expect(page.get_by_role("heading", level=2)).to_have_text("by-hand")
    before, after = stored(page, "by-hand", "v1"), stored(page, "by-hand", "v2")
    assert after["impl"] == {**before["impl"], "query": {"q": "${place}", "lang": "x-${note}"}}
    assert after["argSchema"]["properties"] == {"note": {"type": "string"}, "place": {"type": "string"}}
    same = ("description", "outputSchema", "tags", "isEnabled", "displayName")
    assert (
        {key: after[key] for key in same} == {key: before[key] for key in same} == {key: document[key] for key in same}
    )
    field_of(page, "place").fill("Bergen")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(result_of(page)).to_contain_text("sunny")
