"""A model calls the tools of a project. The three lines with `tools` are what Toolcrib adds to the usual loop."""

from scripted_model import client  # a model that needs no key; yours is: client = openai.OpenAI()

from toolcrib import Crib
from toolcrib.adapters import OpenAIChat

messages: list[object] = [{"role": "user", "content": "Which word is the most frequent in 'the cat and the hat'?"}]
with Crib(".") as crib:
    tools = OpenAIChat(crib)
    while True:
        reply = client.chat.completions.create(model="scripted", messages=messages, tools=tools.definitions)
        answers = tools.answer_sync(reply)
        if not answers:
            break
        messages += [reply.choices[0].message, *answers]
print(reply.choices[0].message.content)
