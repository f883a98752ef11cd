class Ledger:
    """A petty cash book."""

    def __init__(self, opening: float = 0.0):
        self.balance = opening
        self.entries = []

    def book(self, amount: float, text: str = "") -> float:
        """Book an amount; spending is negative."""
        if self.balance + amount < 0:
            raise ValueError("the cash box would be overdrawn")
        self.balance += amount
        self.entries.append((text, amount))
        return self.balance

    def statement(self) -> str:
        return "\n".join(f"{t or '-'}: {a:+.2f}" for t, a in self.entries)
