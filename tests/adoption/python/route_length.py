from dataclasses import dataclass
from math import atan2, cos, radians, sin, sqrt
from typing import NamedTuple


class Point(NamedTuple):
    lat: float
    lon: float


@dataclass(frozen=True)
class Stop:
    name: str
    at: Point


@dataclass
class Route:
    stops: list[Stop]
    closed: bool = False


class Leg(NamedTuple):
    origin: str
    target: str
    km: float


def longest_leg(route: Route) -> Leg:
    """The longest leg of a delivery route, as the crow flies."""
    stops = list(route.stops)
    if route.closed and stops:
        stops.append(stops[0])
    if len(stops) < 2:
        raise ValueError("a route needs two stops")
    legs = [Leg(a.name, b.name, round(_km(a.at, b.at), 1)) for a, b in zip(stops, stops[1:])]
    return max(legs, key=lambda leg: leg.km)


def _km(a: Point, b: Point) -> float:
    dlat, dlon = radians(b.lat - a.lat), radians(b.lon - a.lon)
    h = sin(dlat / 2) ** 2 + cos(radians(a.lat)) * cos(radians(b.lat)) * sin(dlon / 2) ** 2
    return 6371 * 2 * atan2(sqrt(h), sqrt(1 - h))
