"""A chat with an OpenAI model: it asks for tools, the crib runs them under guard."""

from typing import Any

from openai.types.chat import ChatCompletion

from toolcrib import Crib, tool
from toolcrib.adapters import OpenAIChat


@tool
def forecast(city: str) -> str:
    """The weather of tomorrow in a city."""
    return f"rain in {city} until noon"


def chat(client: Any, model: str, crib: Crib, question: str) -> str:
    tools = OpenAIChat(crib, tools=["forecast"])
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        reply = client.chat.completions.create(model=model, messages=messages, tools=tools.definitions)
        answers = tools.answer_sync(reply)
        messages += [reply.choices[0].message, *answers]
        if not answers:
            return str(reply.choices[0].message.content)


class Scripted:
    """A model that needs no key: it asks for the forecast and repeats it. Put openai.OpenAI() in its place."""

    def __init__(self) -> None:
        self.chat = self.completions = self

    def create(self, *, messages: list[Any], **_: object) -> ChatCompletion:
        function = {"name": "forecast", "arguments": '{"city": "Oslo"}'}
        asked = {"id": "call_1", "type": "function", "function": function}
        said: dict[str, Any] = {"role": "assistant", "tool_calls": [asked]}
        if len(messages) > 1:
            said = {"role": "assistant", "content": f"Yes: {messages[-1]['content']}."}
        return ChatCompletion.construct(choices=[{"message": said}])


if __name__ == "__main__":
    with Crib(tools=[forecast]) as crib:
        print(chat(Scripted(), "scripted", crib, "Do I need an umbrella in Oslo tomorrow?"))
