"""The recipe builder by hand: an HTTP tool of twelve shapes of APIs, without a line of JSON, and several requests in one tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from browser import Server, served
from playwright.sync_api import Locator, Page, expect
from tests.interfaces.web.conftest import make_project
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
    secrets.write_text("AUTHORIZATION=s3cret-value\nBASIC=YWRhOnB3\n")
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


def paste(page: Page, text: str) -> None:
    box = page.locator("textarea").first
    box.fill(text)
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
    return page.get_by_label("Result", exact=True)


def field_of(page: Page, name: str) -> Locator:
    """The field of an argument in the form of a tool."""
    return page.locator(f"#root_{name}")


def save(page: Page, name: str) -> None:
    page.get_by_label("Name of the tool").fill(name)
    page.get_by_label("What does it do?").fill(f"What a person made of {name}")
    page.get_by_role("button", name="Save as a tool").click()
    page.get_by_role("link", name="Saved.").click()


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


def test_a_host_that_is_not_allowed_is_refused_with_the_reason(page: Page, watch) -> None:
    watch.expect("Failed to load resource")
    page.goto("/ui/#/recipes")
    paste(page, "https://example.com/a")
    page.get_by_role("button", name="Try it").click()
    expect(result_of(page)).to_contain_text("HOST_NOT_ALLOWED")
