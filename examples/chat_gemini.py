"""A chat with a Gemini model: it asks for tools, the crib runs them under guard."""

from typing import Any

from google.genai.types import GenerateContentResponse

from toolcrib import Crib, tool
from toolcrib.adapters import Gemini


@tool
def forecast(city: str) -> str:
    """The weather of tomorrow in a city."""
    return f"rain in {city} until noon"


def chat(client: Any, model: str, crib: Crib, question: str) -> str:
    tools = Gemini(crib, tools=["forecast"])
    contents: list[Any] = [{"role": "user", "parts": [{"text": question}]}]
    while True:
        reply = client.models.generate_content(model=model, contents=contents, config={"tools": tools.definitions})
        answers = tools.answer_sync(reply)
        contents += [reply.candidates[0].content, *answers]
        if not answers:
            return str(reply.text)


class Scripted:
    """A model that needs no key: it asks for the forecast and repeats it. Put google.genai.Client() in its place."""

    def __init__(self) -> None:
        self.models = self

    def generate_content(self, *, contents: list[Any], **_: object) -> GenerateContentResponse:
        said: dict[str, Any] = {"functionCall": {"name": "forecast", "args": {"city": "Oslo"}}}
        if len(contents) > 1:
            said = {"text": f"Yes: {contents[-1]['parts'][0]['function_response']['response']['output']}."}
        return GenerateContentResponse.model_validate({"candidates": [{"content": {"role": "model", "parts": [said]}}]})


if __name__ == "__main__":
    with Crib(tools=[forecast]) as crib:
        print(chat(Scripted(), "scripted", crib, "Do I need an umbrella in Oslo tomorrow?"))
