"""The vendors' own packages as judges, and a server on loopback that says what a script says, in their wire formats."""

import importlib
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from toolcrib import Kind, ToolError, tool
from toolcrib.adapters import Anthropic, Gemini, OpenAIChat, OpenAIResponses

SHAPES = ["openai-chat", "openai-responses", "gemini", "anthropic"]


@dataclass
class Told:
    """What a model is told of one of its calls, whichever the vendor."""

    id: str | None
    ok: bool
    value: Any


class Shape:
    """One vendor's way to ask and to be answered; what we answer is held against the vendor's own types."""

    adapter: type
    takes_text = False
    no_id: str | None = ""
    parse: Callable[..., Any]
    wire: Callable[..., dict]

    def reply(self, *calls: tuple) -> object:
        """The vendor's object for a reply that asks for `(id, name, arguments)`."""
        return self.parse(self.wire(*calls))

    def write(self, arguments: object) -> object:
        """Arguments as they stand in the wire format; a text is taken as it is."""
        if not self.takes_text or arguments is None or isinstance(arguments, str):
            return arguments
        return json.dumps(arguments)


class ChatShape(Shape):
    adapter = OpenAIChat
    takes_text = True

    def __init__(self, vendors) -> None:
        self.types = vendors("openai.types.chat")
        self.judge = vendors("pydantic").TypeAdapter(self.types.ChatCompletionToolMessageParam)
        self.definition = vendors("pydantic").TypeAdapter(self.types.ChatCompletionFunctionToolParam)

    def wire(self, *calls) -> dict:
        tool_calls = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": self.write(arguments)}}
            for id, name, arguments in calls
        ]
        message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": tool_calls}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": message}],
        }

    def silent(self) -> dict:
        wire = self.wire()
        wire["choices"][0] |= {"finish_reason": "stop", "message": {"role": "assistant", "content": "It is 3."}}
        return wire

    def parse(self, wire):
        return self.types.ChatCompletion.model_validate(wire)

    def variants(self, *calls):
        whole, wire = self.reply(*calls), self.wire(*calls)
        message, plain = whole.choices[0].message, wire["choices"][0]["message"]
        return [whole, whole.choices[0], message, message.tool_calls, wire, plain, plain["tool_calls"]]

    def read(self, answer) -> list[Told]:
        return [self._told(self.judge.validate_python(message, strict=True)) for message in answer]

    def _told(self, message) -> Told:
        assert message["role"] == "tool"
        return told_text(message["tool_call_id"], message["content"])


class ResponsesShape(Shape):
    adapter = OpenAIResponses
    takes_text = True

    def __init__(self, vendors) -> None:
        self.types = vendors("openai.types.responses")
        items = vendors("openai.types.responses.response_input_item_param")
        self.judge = vendors("pydantic").TypeAdapter(items.FunctionCallOutput)
        self.definition = vendors("pydantic").TypeAdapter(self.types.FunctionToolParam)

    def wire(self, *calls) -> dict:
        output = [{"type": "reasoning", "id": "rs_1", "summary": []}] + [
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": id,
                "name": name,
                "arguments": self.write(arguments),
                "status": "completed",
            }
            for number, (id, name, arguments) in enumerate(calls)
        ]
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "scripted",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def silent(self) -> dict:
        content = [{"type": "output_text", "text": "It is 3.", "annotations": []}]
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
        return {**self.wire(), "output": [message]}

    def parse(self, wire):
        return self.types.Response.model_validate(wire)

    def variants(self, *calls):
        whole, wire = self.reply(*calls), self.wire(*calls)
        return [whole, whole.output, wire, wire["output"]]

    def read(self, answer) -> list[Told]:
        return [self._told(self.judge.validate_python(item, strict=True)) for item in answer]

    def _told(self, item) -> Told:
        assert item["type"] == "function_call_output"
        return told_text(item["call_id"], item["output"])


class GeminiShape(Shape):
    adapter = Gemini
    no_id = None

    def __init__(self, vendors) -> None:
        self.types = vendors("google.genai.types")
        self.definition = vendors("pydantic").TypeAdapter(self.types.Tool)

    def wire(self, *calls) -> dict:
        parts = [{"text": "Let me see.", "thought": True}] + [
            {"functionCall": {key: fact for key, fact in facts.items() if fact is not None}}
            for facts in ({"id": id, "name": name, "args": arguments} for id, name, arguments in calls)
        ]
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}

    def silent(self) -> dict:
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": "It is 3."}]}}]}

    def parse(self, wire):
        return self.types.GenerateContentResponse.model_validate(wire)

    def variants(self, *calls):
        whole, wire = self.reply(*calls), self.wire(*calls)
        candidate, plain = whole.candidates[0], wire["candidates"][0]
        objects = [whole, candidate, candidate.content, candidate.content.parts, whole.function_calls]
        return [*objects, wire, plain, plain["content"], plain["content"]["parts"]]

    def read(self, answer) -> list[Told]:
        contents = [self.types.Content.model_validate(content) for content in answer]
        assert [content.role for content in contents] in ([], ["user"])
        return [self._told(part.function_response) for content in contents for part in content.parts]

    def _told(self, response) -> Told:
        assert response.name is not None
        ((key, value),) = response.response.items()
        return Told(response.id, key == "output", value)


class AnthropicShape(Shape):
    adapter = Anthropic

    def __init__(self, vendors) -> None:
        self.types = vendors("anthropic.types")
        self.judge = vendors("pydantic").TypeAdapter(self.types.ToolResultBlockParam)
        self.message = vendors("pydantic").TypeAdapter(self.types.MessageParam)
        self.definition = vendors("pydantic").TypeAdapter(self.types.ToolParam)

    def wire(self, *calls) -> dict:
        blocks = [{"type": "text", "text": "Let me see."}] + [
            {"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in calls
        ]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": blocks,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def silent(self) -> dict:
        return {**self.wire(), "stop_reason": "end_turn", "content": [{"type": "text", "text": "It is 3."}]}

    def parse(self, wire):
        return self.types.Message.model_validate(wire)

    def variants(self, *calls):
        whole, wire = self.reply(*calls), self.wire(*calls)
        return [whole, whole.content, wire, wire["content"]]

    def read(self, answer) -> list[Told]:
        for message in answer:
            self.message.validate_python(message)
        assert [message["role"] for message in answer] in ([], ["user"])
        blocks = [self.judge.validate_python(block) for message in answer for block in message["content"]]
        return [self._told(block) for block in blocks]

    def _told(self, block) -> Told:
        told = told_text(block["tool_use_id"], block["content"])
        assert told.ok is not block["is_error"]
        return told


def told_text(id: str, content: str) -> Told:
    """What a text says: JSON where it is some, and an error where it is the JSON of one."""
    try:
        value = json.loads(content)
    except ValueError:
        return Told(id, True, content)
    return Told(id, not (isinstance(value, dict) and "retryable" in value), value)


@pytest.fixture(scope="session")
def vendors() -> Callable[[str], Any]:
    """Imports a vendor's package; what it has to say about its own code is none of our business."""

    def load(name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)

    return load


@pytest.fixture(scope="session")
def shapes(vendors) -> dict[str, Shape]:
    made = [ChatShape(vendors), ResponsesShape(vendors), GeminiShape(vendors), AnthropicShape(vendors)]
    return dict(zip(SHAPES, made, strict=True))


@pytest.fixture(params=SHAPES)
def shape(request, shapes) -> Shape:
    """Each of the four ways to ask and to be answered."""
    return shapes[request.param]


@pytest.fixture(params=["openai-chat", "openai-responses"])
def text_shape(request, shapes) -> Shape:
    """The two whose models write arguments as text."""
    return shapes[request.param]


@pytest.fixture(params=["gemini", "anthropic"])
def object_shape(request, shapes) -> Shape:
    """The two whose packages hand arguments over as objects."""
    return shapes[request.param]


@dataclass
class Bench:
    """Tools that note what they did."""

    done: list[object] = field(default_factory=list)

    def tools(self) -> list[Callable[..., object]]:
        @tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            self.done.append(("add", a, b))
            return a + b

        @tool
        def greet(name: str, *, loud: bool = False) -> str:
            """Greet somebody."""
            return f"HELLO {name.upper()}" if loud else f"hello {name}"

        @tool(confirm=True, side_effects="writes")
        def wipe(disk: str) -> str:
            """Wipe a disk."""
            self.done.append(("wipe", disk))
            return f"{disk} is empty"

        @tool(modes=["text"])
        def table() -> dict:
            """A table, which cannot be read aloud."""
            return {"rows": [1, 2]}

        @tool(name="größe_messen")
        def measure(cm: int) -> str:
            """Measure something."""
            return f"{cm} cm"

        @tool
        def fail(how: str) -> str:
            """Fail."""
            if how == "well":
                raise ToolError(
                    Kind.TRANSIENT,
                    "the line is \ud800 busy",
                    retryable=True,
                    partial_side_effects=True,
                    value={"sent": 2},
                )
            raise ValueError("the secret is hunter2")

        @tool
        def nothing() -> None:
            """Do nothing."""

        return [add, greet, wipe, table, measure, fail, nothing]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def crib(crib_of, bench):
    return crib_of(*bench.tools(), builtins={"enabled": False})


@dataclass
class Server:
    """What it was asked, and what it will say."""

    url: str
    script: list[dict] = field(default_factory=list)
    asked: list[dict] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that answers each request with the next reply of its script."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(said.script.pop(0)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        said = Server(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield said
        listening.shutdown()
        thread.join(timeout=25)
        assert not thread.is_alive()
