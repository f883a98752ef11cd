"""A rule of your own: deny, ask for confirmation, or allow."""

from toolcrib import ALLOW, Call, Crib, SafetyRule, Tool, Verdict, confirm, deny, tool


class LargeOrders:
    """Ask a person about large orders and refuse absurd ones."""

    name = "large_orders"

    def concerns(self, tool: Tool) -> bool:
        return "orders" in tool.tags

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        pieces = call.arguments.get("pieces")
        if not isinstance(pieces, int) or pieces <= 10:
            return ALLOW
        if pieces > 1_000:
            return deny(f"{pieces} pieces are too many", rule=self.name, cure="order 1000 at the most")
        return confirm(f"{pieces} pieces are a large order", rule=self.name)


@tool(tags=["orders"])
def order(item: str, pieces: int) -> str:
    """Order an item."""
    return f"ordered {pieces} of {item}"


if __name__ == "__main__":
    no_weapons = SafetyRule(name="no_weapons", forbidden_patterns=["sword", "axe"])
    with Crib(tools=[order], rules=[LargeOrders(), no_weapons]) as crib:
        print(crib.call_sync("order", item="lamp", pieces=2).value)
        print(crib.call_sync("order", item="lamp", pieces=50).error)
        print(crib.call_sync("order", item="lamp", pieces=5000).error)
        print(crib.call_sync("order", item="axe", pieces=1).error)
