import requests_toolbelt_pro as rtp
from dataclasses import dataclass


@dataclass
class Place:
    name: str
    lat: float
    lon: float


def geo_lookup(name: str) -> Place:
    """Where a place is."""
    return Place(name, *rtp.lookup(name))
