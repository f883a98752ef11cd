"""The web page over HTTP: its document and files need no token, nothing else is served, and its policy allows nothing foreign."""

from __future__ import annotations

import gzip
import re
from typing import get_args

import pytest

from toolcrib import Kind
from toolcrib.features.access.endpoints import SHOWN_LIMITS
from toolcrib.features.requests.queues import HistoryStep
from toolcrib.model.approval import State
from toolcrib.model.call import Scope
from toolcrib.model.limits import PERIODS
from toolcrib.model.tool import Run, SideEffects
from toolcrib.model.toolrequest import Status

HTML = {"accept": "text/html,application/xhtml+xml"}


async def test_a_browser_is_led_to_the_page_and_a_program_to_the_api(world):
    browser = await world.client.get("/", headers=HTML)
    program = await world.client.get("/")
    assert (browser.status, browser.headers["location"]) == (307, "/ui/")
    assert program.json["api"] == "/openapi.json"


async def test_the_document_carries_a_nonce_of_its_own_and_a_policy_without_eval_or_inline_scripts(world):
    first, second = [await world.client.get("/ui/") for _ in range(2)]
    policy = first.headers["content-security-policy"]
    nonces = [re.search(rb'csp-nonce" content="([^"]+)"', reply.raw)[1].decode() for reply in (first, second)]
    assert f"style-src 'self' 'nonce-{nonces[0]}'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert nonces[0] != nonces[1]
    assert first.headers["cache-control"] == "no-store"


async def test_files_may_be_kept_for_ever_and_are_packed_for_those_who_take_it(world):
    document = await world.client.get("/ui/")
    script = re.search(rb'src="\./([^"]+\.js)"', document.raw)[1].decode()
    plain = await world.client.get(f"/ui/{script}")
    packed = await world.client.get(f"/ui/{script}", headers={"accept-encoding": "gzip, br"})
    assert gzip.decompress(packed.raw) == plain.raw
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "name", ["..%2Fendpoints.py", "%2e%2e", "plugin.py", ".", "..", "index.html%00", "a" * 3000, "assets"]
)
async def test_nothing_but_the_files_of_the_page_is_served(world, name):
    assert (await world.client.get(f"/ui/{name}")).status in {400, 404}


async def test_the_palette_keeps_its_name_and_so_is_not_kept_by_browsers(world):
    palette = await world.client.get("/ui/palette.js")
    assert palette.status == 200
    assert palette.headers["cache-control"] == "no-store"


async def test_the_sample_chat_is_under_the_policy_of_the_page(world):
    chat = await world.client.get("/ui/chat.html")
    assert b"<toolcrib-palette>" in chat.raw
    assert "script-src 'self';" in chat.headers["content-security-policy"]


async def test_what_a_browser_loads_first_stays_small(world):
    document = await world.client.get("/ui/")
    names = re.findall(rb'(?:src|href)="\./([^"]+\.(?:js|css))"', document.raw)
    packed = [await world.client.get(f"/ui/{name.decode()}", headers={"accept-encoding": "gzip"}) for name in names]
    assert len(document.raw) + sum(len(file.raw) for file in packed) < 250_000


async def test_a_screen_is_there_because_its_feature_registered_it(world):
    screens = (await world.client.get("/ui/screens")).json["screens"]
    assert {"tools", "bundles", "approvals", "requests", "health"} <= set(screens)


async def test_the_list_of_the_page_is_filtered_and_sliced_by_the_server(world):
    everything = (await world.client.get("/ui/tools")).json
    slice_ = (await world.client.get("/ui/tools?offset=1&size=1")).json
    disabled = (await world.client.get("/ui/tools?state=disabled")).json
    assert everything["total"] == len(everything["tools"]) == slice_["total"]
    assert slice_["tools"] == everything["tools"][1:2]
    assert disabled["tools"] == [tool for tool in everything["tools"] if not tool["enabled"]]
    assert {tool["foundBy"] for tool in everything["tools"]} == {""}
    found = (await world.client.get(f"/ui/tools?q={everything['tools'][0]['name']}")).json["tools"]
    assert (found[0]["name"], found[0]["foundBy"]) == (everything["tools"][0]["name"], "prefix")
    assert set(everything["filters"]) == {"bundle", "tag", "kind", "effects"}


async def test_a_translation_in_the_data_folder_is_offered_and_served_without_a_token(make_world):
    world = make_world(open_to_loopback=False)
    folder = world.crib.settings.data / "languages"
    folder.mkdir(parents=True)
    (folder / "de.json").write_text('{"nav.tools": "Werkzeuge", "nav.bundles": 7}')
    (folder / "not a language.json").write_text("{}")
    (folder / "fr.json").write_text("[]")
    document = await world.client.get("/ui/?lang=de")
    assert b'name="languages" content="de fr"' in document.raw
    assert (await world.client.get("/ui/languages/de")).json == {"nav.tools": "Werkzeuge"}
    for name in ("fr", "es", "..%2Fde", "de.json", "%00", "x" * 3_000):
        assert (await world.client.get(f"/ui/languages/{name}")).status in {400, 404}


async def test_a_translation_that_is_too_large_is_not_served(world):
    folder = world.crib.settings.data / "languages"
    folder.mkdir(parents=True)
    (folder / "de.json").write_text('{"nav.tools": "' + "x" * 1_100_000 + '"}')
    assert (await world.client.get("/ui/languages/de")).status == 404


async def test_translators_begin_with_every_text_by_its_id(world):
    texts = (await world.client.get("/ui/messages.json")).json
    assert texts["nav.tools"] == "Tools"
    assert len(texts) > 300


async def test_every_word_of_the_server_that_the_page_shows_has_a_text(world):
    texts = (await world.client.get("/ui/messages.json")).json
    explained = (await world.client.post("/crib/explain", {"name": "nothing"})).json
    words = {
        "error": Kind,
        "gate": [finding["gate"] for finding in explained["findings"]],
        "approvals": State,
        "requests.status": Status,
        "requests.step": HistoryStep,
        "tools.kind": {run.kind for run in get_args(Run) if isinstance(run.kind, str)},
        "tools.effects": SideEffects,
        "access.scope": Scope,
        "access.per": PERIODS,
        "access.server": SHOWN_LIMITS,
    }
    assert [
        f"{group}.{name}" for group, names in words.items() for name in names if f"{group}.{name}" not in texts
    ] == []
