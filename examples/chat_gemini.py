"""A chat with a Gemini model: it asks for tools, the crib runs them under guard."""

from google.genai.types import GenerateContentResponse

from toolcrib import Crib, tool
from toolcrib.adapters import Gemini


@tool
def forecast(city: str) -> str:
    """The weather of tomorrow in a city."""
    return f"rain in {city} until noon"


def chat(client, model, crib, question):
    tools, contents = Gemini(crib, tools=["forecast"]), [{"role": "user", "parts": [{"text": question}]}]
    while True:
        reply = client.models.generate_content(model=model, contents=contents, config={"tools": tools.definitions})
        answers = tools.answer_sync(reply)
        contents += [reply.candidates[0].content, *answers]
        if not answers:
            return reply.text


class Scripted:
    """A model that needs no key: it asks for the forecast and repeats it. Put google.genai.Client() in its place."""

    def __init__(self):
        self.models = self

    def generate_content(self, *, contents, **_):
        said = {"functionCall": {"name": "forecast", "args": {"city": "Oslo"}}}
        if len(contents) > 1:
            said = {"text": f"Yes: {contents[-1]['parts'][0]['function_response']['response']['output']}."}
        return GenerateContentResponse(candidates=[{"content": {"role": "model", "parts": [said]}}])


if __name__ == "__main__":
    with Crib(tools=[forecast]) as crib:
        print(chat(Scripted(), "scripted", crib, "Do I need an umbrella in Oslo tomorrow?"))
