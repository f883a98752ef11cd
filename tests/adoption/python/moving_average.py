# /// script
# dependencies = ["numpy"]
# ///
import numpy as np


def moving_average(values: list[float], window: int = 3):
    """Smooth a series with a moving average."""
    if window < 1 or window > len(values):
        raise ValueError("window must be between 1 and the number of values")
    return np.convolve(np.asarray(values, dtype=float), np.ones(window) / window, mode="valid").round(6)


def peak(values: list[float]) -> int:
    """Index of the highest value."""
    return np.argmax(values)
