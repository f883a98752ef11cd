from dataclasses import dataclass
from typing import Literal


@dataclass
class Card:
    number: str
    kind: Literal["card"] = "card"

    def __post_init__(self):
        if not self.number.isdigit():
            raise ValueError("a card number has digits only")


@dataclass
class Transfer:
    iban: str
    urgent: bool = False
    kind: Literal["transfer"] = "transfer"


def payment_fee(amount: float, method: Card | Transfer) -> dict:
    """Fee of a payment, by its method."""
    if isinstance(method, Card):
        return {"fee": round(amount * 0.02, 2), "by": "card ending " + method.number[-4:]}
    if isinstance(method, Transfer):
        return {"fee": 5.0 if method.urgent else 0.0, "by": "transfer to " + method.iban[:2]}
    raise TypeError(f"method is a {type(method).__name__}")
