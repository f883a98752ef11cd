"""Tools of the test project that are functions of the host program: plain ones, failing ones, and hostile ones."""

import asyncio
from collections.abc import AsyncIterator

from toolcrib import Context, Cost, Intent, Kind, PromptArgument, Tool, ToolError, prompt, resource, tool
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Http, HttpCall

MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\x1b[31mred\x1b[0m"
# The largest that a project takes, and larger ones.
FIELDS, LEVELS = 1_500, 25
TOO_MANY_FIELDS, TOO_MANY_LEVELS = 10_000, 100


@tool(tags=("letters",))
def shout(text: str, times: int = 1) -> str:
    """Repeat a text in capitals.

    Args:
        text: What to shout.
        times: How many times.
    """
    return " ".join([text.upper()] * times)


@tool
def sign_in(user: str, password: str) -> str:
    """Pretend to sign in.

    Args:
        user: Who.
        password: What is masked in stored runs.
    """
    return f"{user}: {len(password)}"


@tool(confirm=True, side_effects="writes")
def wipe(folder: str) -> str:
    """Pretend to wipe a folder.

    Args:
        folder: Which one.
    """
    return f"wiped {folder}"


# Two requests, the second with an answer of the first; nothing here may be reached, so neither is ever sent.
book_room = Tool(
    name="book_room",
    description="Book a room.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "guest": {"type": "string"}},
        "required": ["city", "guest"],
        "additionalProperties": False,
    },
    bundle="host",
    requires_confirmation=True,
    run=Http(
        calls=(
            HttpCall(
                name="room",
                method="POST",
                url="https://rooms.test/v1/${city}",
                headers={"Authorization": "Bearer ${secret:ROOMS}"},
                body={"guest": "${guest}"},
            ),
            HttpCall(method="POST", url="https://rooms.test/pay/${room.id}", body={"room": "${room.id}"}),
        )
    ),
)


@tool(description=MARKUP)
def markup() -> str:
    """Return HTML and terminal codes."""
    return MARKUP


@tool
def huge(megabytes: int) -> str:
    """Return a long text.

    Args:
        megabytes: How long.
    """
    return "0123456789abcdef" * (megabytes * 65_536)


@tool
def fail(reason: str) -> str:
    """Fail.

    Args:
        reason: What the error says.
    """
    raise ToolError(Kind.VALIDATION, reason)


@tool
def farewell() -> object:
    """Say goodbye, and ask the host to end the session."""
    return Outcome(value="bye", intents=(Intent(type="END_SESSION", fields={"after": "reply", "note": "<b>now</b>"}),))


@tool(cost=Cost(per_invocation=0.25, currency="EUR"))
def paint(subject: str) -> str:
    """Paint a picture for money.

    Args:
        subject: What to paint.
    """
    return f"a picture of {subject}"


@tool
def manual() -> str:
    """Explain itself.

    # Before you start

    - read **this** `first`

    Then [your bank](https://elsewhere.example/x), <b onclick="document.title='owned'">press here</b>.
    """
    return "done"


@tool
async def linger(note: str = "") -> str:
    """Never end by itself."""
    await asyncio.Event().wait()
    return note


@tool
async def pour(context: Context, into: str = "") -> AsyncIterator[str]:
    """Yield a little, and never end by itself."""
    context.progress(1, 4, "a quarter <b>full</b>")
    yield "first drops \x1b[31m<b>red</b>"
    await asyncio.Event().wait()


@resource("notes://{day}", day=["today", "yesterday"], mime_type="text/plain")
def note(context: object, day: str) -> str:
    """What was written down on a day."""
    if day == "never":
        raise ToolError(Kind.VALIDATION, "there is no such day")
    return f"<b>rain</b> \u202e {day}"


@prompt("topic", PromptArgument(name="tone", description="How it sounds.", choices=("dry", "warm")), title="An essay")
def essay(context: object, topic: str, tone: str = "dry") -> list[object]:
    """Ask for an essay."""
    return [f"Write about {topic}, {tone}.", {"role": "assistant", "content": "Gladly."}]


def flat(fields: int) -> dict[str, object]:
    """An object with many fields."""
    return {
        "type": "object",
        "properties": {f"f{number}": {} for number in range(fields)},
        "additionalProperties": False,
    }


def nested(levels: int) -> dict[str, object]:
    """An object in an object in an object …"""
    schema: dict[str, object] = {"type": "string"}
    for level in range(levels):
        schema = {"type": "object", "properties": {f"level{level}": schema}, "additionalProperties": False}
    return schema


TEXT_OR_NUMBER = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
SCHEMAS: dict[str, dict[str, object]] = {
    "wide": flat(FIELDS),
    "deep": nested(LEVELS),
    "too_wide": flat(TOO_MANY_FIELDS),
    "too_deep": nested(TOO_MANY_LEVELS),
    "recursive": {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
            }
        },
        "additionalProperties": False,
    },
    "choices": {
        "type": "object",
        "properties": {
            "to": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"by": {"const": "mail"}, "address": {"type": "string", "minLength": 3}},
                        "required": ["by", "address"],
                    },
                    {"$ref": "#/$defs/Phone"},
                    {"type": "null"},
                ]
            }
        },
        "$defs": {
            "Phone": {
                "type": "object",
                "properties": {"by": {"const": "phone"}, "number": {"type": "integer"}},
                "required": ["by", "number"],
            }
        },
        "additionalProperties": False,
    },
    "unions": {
        "type": "object",
        "properties": {
            "value": {
                "oneOf": [
                    {"title": "Text or number", **TEXT_OR_NUMBER},
                    {
                        "title": "Pair",
                        "type": "object",
                        "properties": {"left": TEXT_OR_NUMBER, "right": TEXT_OR_NUMBER},
                    },
                    {"title": "List", "type": "array", "items": TEXT_OR_NUMBER},
                ]
            }
        },
        "additionalProperties": False,
    },
}


def echo(name: str):
    """A tool with a hostile schema, which gives its arguments back."""

    @tool(name=name, description=f"Take {name} arguments.", parameters=SCHEMAS[name])
    def given(**values: object) -> dict[str, object]:
        return values

    return given


wide, deep, too_wide, too_deep, recursive, choices, unions = map(echo, SCHEMAS)
