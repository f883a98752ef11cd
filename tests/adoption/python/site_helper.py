"""part of our package; shares its settings"""
from . import settings
from .formatting import euro


def price_tag(cents: int) -> str:
    """Price as on the shelf."""
    return euro(cents / 100, settings.LOCALE)
