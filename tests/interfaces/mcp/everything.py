"""What the official conformance suite calls by name, as functions of a host program.

`python everything.py PORT [PROJECT]` serves it, `python everything.py --names` prints the names of its tools.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import Any

from toolcrib import Context, Crib, Kind, PromptArgument, ToolError, prompt, resource, tool
from toolcrib.interfaces.http.server import serve

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
IMAGE = {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}
WAVE = b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00D\xac\x00\x00\x88X\x01\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
SOUND = {"type": "audio", "data": base64.b64encode(WAVE).decode(), "mimeType": "audio/wav"}
CONTENT: dict[str, object] = {"x-mcp-content": True}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}

CRIBS: list[Crib] = []


@tool
def test_simple_text() -> str:
    """Give a simple text."""
    return "This is a simple text response for testing."


@tool(output_schema=CONTENT)
def test_image_content() -> dict:
    """Give an image."""
    return IMAGE


@tool(output_schema=CONTENT)
def test_audio_content() -> dict:
    """Give a sound."""
    return SOUND


@tool(output_schema=CONTENT)
def test_embedded_resource() -> dict:
    """Give a resource within the result."""
    text = "This is an embedded resource content."
    return {"type": "resource", "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": text}}


@tool(output_schema=CONTENT)
def test_multiple_content_types() -> list:
    """Give content of several types."""
    embedded = {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    }
    return ["Multiple content types test:", IMAGE, {"type": "resource", "resource": embedded}]


@tool
async def test_tool_with_logging(context: Context) -> str:
    """Log three messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log("info", message)
        await asyncio.sleep(0.05)
    return "logged"


@tool
async def test_logging_tool(context: Context) -> str:
    """Log a message."""
    context.log("info", "a message that only those hear who want to")
    return "logged"


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError(Kind.PERMANENT, "This tool intentionally returns an error for testing")


@tool
async def test_reconnection(context: Context) -> str:
    """Send something before the result, so that it comes in a stream that can be resumed."""
    context.log("info", "Working")
    await asyncio.sleep(0.05)
    return "Reconnection test completed"


@tool
async def test_tool_with_progress(context: Context) -> str:
    """Tell of progress."""
    for done in (0, 50, 100):
        context.progress(done, 100)
        await asyncio.sleep(0.05)
    return "done"


@tool
async def test_sampling(prompt: str, context: Context) -> str:
    """Ask the model of the client."""
    answer = await context.sample(prompt, max_tokens=100)
    return f"LLM response: {answer['content']}"


@tool
async def test_missing_capability(context: Context) -> str:
    """Ask the model of a client that has none."""
    return str(await context.sample("Hello"))


@tool
async def test_elicitation(message: str, context: Context) -> str:
    """Ask the user of the client."""
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"username": text, "email": text}, "required": ["username", "email"]}
    return f"User response: {await context.elicit(message, schema)}"


@tool
async def test_streaming_elicitation(context: Context) -> str:
    """Log, and ask the user of the client."""
    context.progress(1, 2)
    return f"User response: {await context.elicit('Your name?', NAME)}"


@tool
async def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Ask with defaults."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    }
    return f"Elicitation completed: {await context.elicit('Please check these', schema)}"


def _options(word: str) -> list[dict]:
    return [{"const": f"value{n}", "title": f"{name} {word}"} for n, name in enumerate(("First", "Second", "Third"), 1)]


@tool
async def test_elicitation_sep1330_enums(context: Context) -> str:
    """Ask with choices."""
    plain = ["option1", "option2", "option3"]
    schema = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": _options("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": _options("Choice")}},
        },
    }
    return f"Elicitation completed: {await context.elicit('Please choose', schema)}"


SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool(parameters=SCHEMA_2020)
def json_schema_2020_12_tool(**given: object) -> str:
    """Take what a schema with many keywords allows."""
    return f"given: {sorted(given)}"


@tool(
    parameters={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
        "required": ["region", "query"],
        "additionalProperties": False,
    }
)
def test_header_parameter(region: str, query: str) -> str:
    """Take an argument that is repeated in a header."""
    return f"{region}: {query}"


@tool
async def test_input_required_result_elicitation(context: Context) -> str:
    """Ask for a name."""
    answer: Any = await context.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {answer['content']['name']}!"


@tool
async def test_input_required_result_sampling(context: Context) -> str:
    """Ask for a capital."""
    return str(await context.sample("What is the capital of France?", max_tokens=100, key="capital_question"))


@tool
async def test_input_required_result_list_roots(context: Context) -> str:
    """Ask for the roots."""
    return str(await context.roots(key="client_roots"))


@tool
async def test_input_required_result_request_state(context: Context) -> str:
    """Ask for a confirmation."""
    await context.elicit("Please confirm", OK, key="confirm")
    return "state-ok"


@tool
async def test_input_required_result_tampered_state(context: Context) -> str:
    """Ask for a confirmation."""
    await context.elicit("Please confirm", OK, key="confirm")
    return "state-ok"


@tool
async def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Ask for three things at once."""
    name, greeting, roots = await asyncio.gather(
        context.elicit("What is your name?", NAME, key="user_name"),
        context.sample("Generate a greeting", max_tokens=50, key="greeting"),
        context.roots(key="client_roots"),
    )
    return f"{name} {greeting} {roots}"


@tool
async def test_input_required_result_multi_round(context: Context) -> str:
    """Ask for one thing after the other."""
    colour = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    name = await context.elicit("Step 1: What is your name?", NAME, key="step1")
    return f"{name} {await context.elicit('Step 2: What is your favorite color?', colour, key='step2')}"


@tool
async def test_input_required_result_capabilities(context: Context) -> str:
    """Ask the user, or else the model."""
    try:
        return str(await context.elicit("Your name?", NAME, key="name"))
    except ToolError:
        return str(await context.sample("Invent a name", key="name"))


@tool
async def test_trigger_tool_change() -> str:
    """Add a tool."""

    def added() -> str:
        """Have been added."""
        return "added"

    added.__name__ = f"added_{len(CRIBS[0].tools)}"
    CRIBS[0].add(added)
    return "added"


@tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt."""
    publications = CRIBS[0].publications
    publications.add(prompt(name=f"added_{publications.generation}", description="Added.")(lambda _: "Hello"))
    return "added"


@resource("test://static-text", mime_type="text/plain")
def static_text(context) -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
def static_binary(context) -> bytes:
    """An image."""
    return PIXEL


@resource("test://template/{id}/data", mime_type="application/json")
def template_data(context, id: str) -> str:
    """Data of an id."""
    return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


@resource("test://watched-resource", mime_type="text/plain")
def watched(context) -> str:
    """A text that changes."""
    return "watched"


@prompt(name="test_simple_prompt", description="A simple prompt.")
def simple_prompt(context) -> str:
    return "This is a simple prompt for testing."


@prompt(
    PromptArgument(name="arg1", description="First test argument", required=True, choices=("testing", "tested")),
    PromptArgument(name="arg2", description="Second test argument", required=True),
    name="test_prompt_with_arguments",
    description="A prompt with arguments.",
)
def prompt_with_arguments(context, arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt("resourceUri", name="test_prompt_with_embedded_resource", description="A prompt with a resource.")
def prompt_with_resource(context, resourceUri: str) -> list:
    text = "Embedded resource content for testing."
    embedded = {"type": "resource", "resource": {"uri": resourceUri, "mimeType": "text/plain", "text": text}}
    return [embedded, "Please process the embedded resource above."]


@prompt(name="test_prompt_with_image", description="A prompt with an image.")
def prompt_with_image(context) -> list:
    return [IMAGE, "Please analyze the image above."]


@prompt(name="test_input_required_result_prompt", description="A prompt that asks.")
async def prompt_that_asks(context) -> str:
    schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    answer = await context.elicit("What context should the prompt use?", schema, key="user_context")
    return f"Use {answer['content']['context']}"


TOOLS = [value for name, value in list(vars().items()) if name.startswith(("test_", "json_schema_"))]
PUBLISHED: list[Any] = [
    *(static_text, static_binary, template_data, watched, simple_prompt, prompt_with_arguments),
    *(prompt_with_resource, prompt_with_image, prompt_that_asks),
]


def make_crib(project: str | None = None, **settings: Any) -> Crib:
    """A crib with all of it."""
    crib = Crib(project, tools=TOOLS, builtins={"enabled": False}, **settings)
    for published in PUBLISHED:
        crib.publications.add(published)
    CRIBS[:] = [crib]
    return crib


async def main(port: int, project: str | None = None) -> None:
    """Serve it until a signal comes."""
    async with make_crib(project) as crib:
        await serve(crib, host="127.0.0.1", port=port, say=print, ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    if sys.argv[1] == "--names":
        print(json.dumps([function.__name__ for function in TOOLS]))
    else:
        asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
