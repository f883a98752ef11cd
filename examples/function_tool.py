"""A function of your own program is a tool; it runs in your process."""

from typing import Annotated, Literal

from toolcrib import Crib, tool

RATES = {"EUR": 1.0, "USD": 1.08, "NOK": 11.6}


@tool(side_effects="none", idempotent=True, tags=["money"])
def convert(
    amount: Annotated[float, "How much."],
    currency: Literal["EUR", "USD", "NOK"] = "EUR",
) -> float:
    """Convert an amount of euros into another currency."""
    return round(amount * RATES[currency], 2)


if __name__ == "__main__":
    with Crib(tools=[convert]) as crib:
        print(crib.call_sync("convert", amount=10, currency="NOK").value)
        print(crib.call_sync("convert", amount="ten").error)
        print(crib.call_sync("convert", amount=10, currency="GBP").error)
