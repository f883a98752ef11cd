NEEDS = {"tomato": 4.0, "salad": 2.5}


def watering_plan(beds, dry=None):
    """Litres per plant."""
    factor = 2 if dry else 1
    return {bed["plant"]: NEEDS.get(bed["plant"], 3.0) * bed["area_m2"] * factor for bed in beds}
