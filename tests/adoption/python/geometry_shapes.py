"""Areas of plots of land; coordinates as (x, y) pairs."""
from typing import Sequence, Tuple

Point = Tuple[float, float]


class Geometry:
    EARTH = 6371.0

    @staticmethod
    def area(corners: Sequence[Point]) -> float:
        """Area of a plot by its corners."""
        if len(corners) < 3:
            raise ValueError("a plot has three corners or more")
        total = 0.0
        for (x1, y1), (x2, y2) in zip(corners, list(corners[1:]) + [corners[0]]):
            total += x1 * y2 - x2 * y1
        return abs(total) / 2


def plot_area(corners: Sequence[Point], price_per_unit: float = 0.0) -> Tuple[float, float]:
    """Area of a plot of land, and what it costs."""
    area = Geometry.area(corners)
    return area, area * price_per_unit
