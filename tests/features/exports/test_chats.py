"""Whole conversations over the wire: the vendors' own clients, and the programs that the pages show."""

import json
import runpy
from pathlib import Path

import pytest
from loopback_server import served

from toolcrib import Crib

EXAMPLES = Path(__file__).parents[3] / "examples"
CALL = ("c1", "forecast", {"city": "Oslo"})
RAIN = "rain in Oslo until noon"


@pytest.fixture
def environment(monkeypatch, server):
    """What the vendors' clients read: where to ask, and a key that opens nothing."""
    for vendor, address in (
        ("OPENAI", f"{server.url}/v1"),
        ("ANTHROPIC", server.url),
        ("GOOGLE_GEMINI", server.url),
    ):
        monkeypatch.setenv(f"{vendor}_BASE_URL", address)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "none")
    for name in ("GOOGLE_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


PROGRAMS = {"chat_openai.py": "openai-chat", "chat_anthropic.py": "anthropic", "chat_gemini.py": "gemini"}


@pytest.fixture
def clients(vendors):
    """The vendor's own client, by the program that talks to it."""
    return {
        "chat_openai.py": lambda: vendors("openai").OpenAI(),
        "chat_anthropic.py": lambda: vendors("anthropic").Anthropic(),
        "chat_gemini.py": lambda: vendors("google.genai").Client(),
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_of_the_pages_run_without_a_key(program, shapes, capsys):
    runpy.run_path(str(EXAMPLES / program), run_name="__main__")
    assert capsys.readouterr().out == "Yes: rain in Oslo until noon.\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_loops_of_the_pages_talk_to_the_real_clients(program, shapes, clients, server, environment):
    shape, shown = shapes[PROGRAMS[program]], runpy.run_path(str(EXAMPLES / program))
    server.script += [shape.wire(CALL), shape.silent()]
    with clients[program]() as client, Crib(tools=[shown["forecast"]]) as crib:
        assert shown["chat"](client, "scripted", crib, "Do I need an umbrella in Oslo tomorrow?") == "It is 3."
    first, second = map(json.dumps, server.asked)
    assert "The weather of tomorrow in a city." in first
    assert RAIN not in first
    assert RAIN in second
    assert '"c1"' in second


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_server_is_a_crib_for_the_real_clients_too(program, shapes, clients, server, environment):
    shape, shown = shapes[PROGRAMS[program]], runpy.run_path(str(EXAMPLES / program))
    server.script += [shape.wire(CALL), shape.silent()]
    with (
        clients[program]() as client,
        served(lambda: Crib(tools=[shown["forecast"]])) as serving,
        Crib.connect(serving.url) as crib,
    ):
        assert shown["chat"](client, "scripted", crib, "Do I need an umbrella in Oslo tomorrow?") == "It is 3."
    first, second = map(json.dumps, server.asked)
    assert "The weather of tomorrow in a city." in first
    assert RAIN in second


def test_responses_hold_a_chat(shapes, vendors, server, environment, bench):
    shape = shapes["openai-responses"]
    server.script += [shape.wire(("c1", "greet", {"name": "Ada"}), ("c2", "rm", {})), shape.silent()]
    items: list = [{"role": "user", "content": "Greet Ada."}]
    with vendors("openai").OpenAI() as client, Crib(tools=bench.tools(), builtins={"enabled": False}) as crib:
        tools = shape.adapter(crib, tools=["greet"], strict=True)
        while answers := tools.answer_sync(
            reply := client.responses.create(model="scripted", input=items, tools=tools.definitions)
        ):
            items += [*reply.output, *answers]
    assert reply.output_text == "It is 3."
    assert [
        item["output"] for item in server.asked[1]["input"] if item.get("call_id") == "c1" and "output" in item
    ] == ["hello Ada"]
    assert server.asked[0]["tools"][0]["name"] == "greet"


@pytest.mark.spec("S4-29")
async def test_async_clients_hold_a_chat(shapes, vendors, server, environment, crib):
    shape = shapes["openai-chat"]
    server.script += [shape.wire(("c1", "add", {"a": 1, "b": 2})), shape.silent()]
    messages: list = [{"role": "user", "content": "What is 1 + 2?"}]
    tools = shape.adapter(crib)
    async with vendors("openai").AsyncOpenAI() as client:
        while answers := await tools.answer(
            reply := await client.chat.completions.create(model="scripted", messages=messages, tools=tools.definitions)
        ):
            messages += [reply.choices[0].message, *answers]
    assert reply.choices[0].message.content == "It is 3."
    assert server.asked[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "3"}
