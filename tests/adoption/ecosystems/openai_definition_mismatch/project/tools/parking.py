def parking_fee(duration_minutes: int, zone: str = "A") -> float:
    """Fee for parking."""
    return round(duration_minutes / 60 * {"A": 4.0, "B": 2.0}[zone], 2)
