"""A chat with an Anthropic model: it asks for tools, the crib runs them under guard."""

from typing import Any

from anthropic.types import Message

from toolcrib import Crib, tool
from toolcrib.adapters import Anthropic


@tool
def forecast(city: str) -> str:
    """The weather of tomorrow in a city."""
    return f"rain in {city} until noon"


def chat(client: Any, model: str, crib: Crib, question: str) -> str:
    tools = Anthropic(crib, tools=["forecast"])
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        reply = client.messages.create(model=model, max_tokens=1000, messages=messages, tools=tools.definitions)
        answers = tools.answer_sync(reply)
        messages += [{"role": "assistant", "content": reply.content}, *answers]
        if not answers:
            return str(reply.content[-1].text)


class Scripted:
    """A model that needs no key: it asks for the forecast and repeats it. Put anthropic.Anthropic() in its place."""

    def __init__(self) -> None:
        self.messages = self

    def create(self, *, messages: list[Any], **_: object) -> Message:
        said: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "forecast", "input": {"city": "Oslo"}}
        if len(messages) > 1:
            said = {"type": "text", "text": f"Yes: {messages[-1]['content'][0]['content']}."}
        return Message.construct(role="assistant", content=[said])


if __name__ == "__main__":
    with Crib(tools=[forecast]) as crib:
        print(chat(Scripted(), "scripted", crib, "Do I need an umbrella in Oslo tomorrow?"))
