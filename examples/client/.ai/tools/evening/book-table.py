__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "evening"
__tool_description__ = "Book a table, and ask the user how many will come"

import rye

GUESTS = {"type": "object", "properties": {"guests": {"type": "integer", "minimum": 1}}, "required": ["guests"]}


def main(restaurant: str) -> dict:
    """Book a table.

    Args:
        restaurant: Where to eat.
    """
    rye.progress(1, 2, "asking the user")
    try:
        answer = rye.elicit(f"How many will eat at {restaurant}?", GUESTS)
    except rye.ToolError as refusal:
        return {"booked": False, "because": refusal.type}
    if answer["action"] != "accept":
        return {"booked": False, "because": answer["action"]}
    rye.log("info", {"restaurant": restaurant})
    rye.progress(2, 2, "booked")
    return {"booked": True, "guests": answer["content"]["guests"]}
