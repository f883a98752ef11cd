# /// script
# dependencies = ["openai"]
# ///
"""The function-calling loop of the OpenAI guide, in one file."""

import json

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "area_of_room",
            "description": "Area of a room in square metres",
            "parameters": {
                "type": "object",
                "properties": {
                    "length": {"type": "number", "minimum": 0},
                    "width": {"type": "number", "minimum": 0},
                    "unit": {"type": "string", "enum": ["m", "ft"]},
                },
                "required": ["length", "width"],
            },
        },
    }
]


def area_of_room(length, width, unit="m"):
    factor = 1.0 if unit == "m" else 0.3048
    return json.dumps({"area": round(length * factor * width * factor, 2)})


AVAILABLE = {"area_of_room": area_of_room}


def run_conversation(prompt):
    from openai import OpenAI

    client = OpenAI()
    answer = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}], tools=TOOLS
    )
    for call in answer.choices[0].message.tool_calls or []:
        print(AVAILABLE[call.function.name](**json.loads(call.function.arguments)))


if __name__ == "__main__":
    run_conversation("How big is a room of 4 by 5 metres?")
