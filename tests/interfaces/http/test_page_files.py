"""The web page over HTTP: its document and files need no token, nothing else is served, and its policy allows nothing foreign."""

from __future__ import annotations

import gzip
import re

import pytest

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
    assert set(everything["filters"]) == {"bundle", "tag", "kind", "effects"}
