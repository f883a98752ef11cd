from __future__ import annotations

from dataclasses import dataclass, field, InitVar
from decimal import Decimal
from typing import ClassVar, Optional


@dataclass(kw_only=True)
class Party:
    name: str
    vat_id: Optional[str] = None


@dataclass
class Line:
    RATE: ClassVar[Decimal] = Decimal("0.19")
    sku: str
    price: Decimal
    qty: int = 1

    @property
    def total(self) -> Decimal:
        return self.price * self.qty


@dataclass
class Discounted(Line):
    percent: int = 0
    seen: bool = field(default=False, init=False)
    campaign: InitVar[str | None] = None

    def __post_init__(self, campaign):
        if not 0 <= self.percent <= 90:
            raise ValueError(f"percent {self.percent} is out of range")
        self.seen = campaign is not None


@dataclass
class Order:
    buyer: Party
    lines: list[Line] = field(default_factory=list)
    extras: dict[str, Discounted] = field(default_factory=dict)


@dataclass
class Quote:
    buyer: str
    net: Decimal
    vat: Decimal
    seen: list[str]


def quote_order(order: Order, currency: str = "EUR") -> Quote:
    """Price an order.

    Parameters
    ----------
    order : Order
        The order.
    currency : str
        The currency.
    """
    assert isinstance(order.buyer, Party)
    assert all(isinstance(line, Line) for line in order.lines)
    net = sum((line.total for line in order.lines), Decimal(0))
    for extra in order.extras.values():
        net += extra.total * (100 - extra.percent) / 100
    return Quote(f"{order.buyer.name} {currency}", net, net * Line.RATE, [k for k, v in order.extras.items() if v.seen])
