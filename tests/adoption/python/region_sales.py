# /// script
# dependencies = ["pandas"]
# ///
"""Quarterly numbers for the sales meeting."""
import pandas as pd

SALES = pd.DataFrame(
    {
        "region": ["north", "north", "south", "west"],
        "quarter": [1, 2, 1, 1],
        "amount": [100.0, 150.5, 80.0, 0.0],
    }
)


def region_sales(quarter: int | None = None) -> list[dict]:
    """Sales of each region, of one quarter or of all."""
    frame = SALES if quarter is None else SALES[SALES["quarter"] == quarter]
    if frame.empty:
        raise ValueError(f"no sales in quarter {quarter}")
    return frame.groupby("region", as_index=False)["amount"].sum().to_dict("records")
