"""Invoice totals the way the accountant wants them: no floats anywhere."""
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import List

CENT = Decimal("0.01")


@dataclass
class Line:
    description: str
    quantity: int
    unit_price: Decimal
    vat_percent: Decimal = Decimal("20")

    @property
    def net(self) -> Decimal:
        return self.quantity * self.unit_price


@dataclass
class Totals:
    net: Decimal
    vat: Decimal
    gross: Decimal
    notes: List[str] = field(default_factory=list)


def invoice_total(lines: List[Line], discount_percent: Decimal = Decimal(0)) -> Totals:
    """Sum up the lines of an invoice, and the VAT on them."""
    factor = 1 - discount_percent / 100
    if factor < 0:
        raise ValueError("discount_percent is more than 100")
    net = sum((l.net * factor for l in lines), Decimal(0)).quantize(CENT, ROUND_HALF_UP)
    vat = sum((l.net * factor * l.vat_percent / 100 for l in lines), Decimal(0)).quantize(CENT, ROUND_HALF_UP)
    notes = [f"{l.description}: no VAT" for l in lines if l.vat_percent == 0]
    return Totals(net, vat, net + vat, notes)
