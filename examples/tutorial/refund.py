"""Money leaves the house here, so a person decides about each call."""

from toolcrib import tool


@tool(confirm=True, side_effects="writes")
def refund(order: str, amount: float) -> str:
    """Pay money back for an order.

    Args:
        order: The number of the order.
        amount: How much, in euros.
    """
    return f"paid back {amount:.2f} euros for {order}"
