# /// script
# dependencies = ["openai-agents"]
# ///
import asyncio

from agents import Agent, Runner, function_tool
from typing_extensions import TypedDict


class Leg(TypedDict):
    origin: str
    destination: str
    km: float


@function_tool
def co2_of_trip(legs: list[Leg], vehicle: str = "train") -> float:
    """Estimate the CO2 of a trip in kilograms.

    Args:
        legs: The legs of the trip.
        vehicle: train, car or plane.
    """
    grams = {"train": 35, "car": 170, "plane": 250}[vehicle]
    return round(sum(leg["km"] for leg in legs) * grams / 1000, 1)


@function_tool(name_override="trip_title", description_override="A title for a trip.")
async def title(legs: list[Leg]) -> str:
    return " → ".join([legs[0]["origin"], *[leg["destination"] for leg in legs]])


agent = Agent(name="Travel desk", instructions="Plan greener trips.", tools=[co2_of_trip, title])


async def main():
    result = await Runner.run(agent, "How much CO2 is Oslo to Bergen by train?")
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
