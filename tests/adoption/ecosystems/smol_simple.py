# /// script
# dependencies = ["smolagents"]
# ///
from smolagents import CodeAgent, InferenceClientModel, tool


@tool
def travel_minutes(km: float, mode: str = "car") -> float:
    """
    Gets the travel time.

    Args:
        km: the distance
        mode: how to travel. Choices are car or bike.
    """
    return km / (60 if mode == "car" else 15) * 60


if __name__ == "__main__":
    agent = CodeAgent(tools=[travel_minutes], model=InferenceClientModel())
    agent.run("How long?")
