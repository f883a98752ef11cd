from __future__ import annotations

from typing import TYPE_CHECKING, IO

if TYPE_CHECKING:
    import pandas as pd


def describe_frame(frame: pd.DataFrame, out: IO[str]) -> None:
    """Write the description of a frame to an open file."""
    out.write(frame.describe().to_string())
