"""A resource and a prompt that MCP clients are offered beside the tools of a project."""

from toolcrib import Context, Crib, prompt, resource


@resource("notes://{day}", mime_type="text/plain", day=["today", "yesterday"])
def note(context: Context, day: str) -> str:
    """The note of a day."""
    return f"Nothing happened {day}."


@prompt("topic")
def explain(context: Context, topic: str) -> str:
    """Explain a topic."""
    return f"Explain {topic} in three sentences."


if __name__ == "__main__":
    with Crib() as crib:
        for published in (note, explain):
            crib.publications.add(published)
        print([found.uri for found in crib.publications.resources()])
        print([found.name for found in crib.publications.prompts()])
