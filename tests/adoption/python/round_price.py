from decimal import Decimal
from math import floor, sqrt

try:
    import tomllib as toml
except ImportError:
    toml = None


def round_price(price, step=0.05):
    """round to the coin we still accept (old)"""
    return round(price / step) * step


def round_price(price: Decimal, step: Decimal = Decimal("0.05")) -> Decimal:
    """Round a price down to the coin that we still accept."""
    if step <= 0:
        raise ValueError("step must be above zero")
    return Decimal(floor(price / step)) * step
