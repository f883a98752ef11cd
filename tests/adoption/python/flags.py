def toggle(feature: str, enabled: bool, percent: int = 100) -> str:
    """Describe a feature switch.

    Args:
        feature: Name of the feature.
        enabled: On or off.
        percent: Share of users, 0 to 100.
    """
    if enabled is not True and enabled is not False:
        raise TypeError(f"enabled is {enabled!r}, not a bool")
    if isinstance(percent, bool) or not 0 <= percent <= 100:
        raise ValueError("percent must be 0 to 100")
    return f"{feature}={'on' if enabled else 'off'}@{percent}"
