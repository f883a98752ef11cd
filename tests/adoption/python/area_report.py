"""Report areas.

Run: python area_report.py
"""
import json
import math
import os

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "rates.json")) as _file:
    RATES = json.load(_file)

calls = 0


def _helper(x):
    return x


def area(radius, unit="m"):
    """Area of a circle.

    Parameters
    ----------
    radius : float
        The radius.
    unit : {'m', 'cm'}, optional
        The unit, by default 'm'.

    Returns
    -------
    float
    """
    global calls
    calls += 1
    return round(math.pi * radius ** 2, 2)


def cost(radius: float, rate: str = "basic") -> float:
    """Cost of a circle."""
    return round(area(radius) * RATES[rate], 2)
