def tally(*amounts: float, label: str = "sum", **rates: float) -> dict:
    """Add amounts up.

    Args:
        *amounts: What to add.
        label: How to call it.
        **rates: Further factors by name.
    """
    total = sum(amounts)
    return {label: total, **{name: total * rate for name, rate in rates.items()}}
