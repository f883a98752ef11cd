"""Preisauskunft"""
from decimal import Decimal, ROUND_HALF_UP
import uuid


def preis_auskunft(artikel: uuid.UUID, menge: Decimal, brutto: bool = True) -> Decimal:
    """Gib den Preis an.

    Args:
        artikel: Nummer des Artikels.
        menge: Menge.
        brutto: Mit Steuer.
    """
    preis = Decimal("1.05") * menge * (Decimal("1.19") if brutto else 1)
    return preis.quantize(Decimal("0.01"), ROUND_HALF_UP)
