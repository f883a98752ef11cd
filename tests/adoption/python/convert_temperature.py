# kitchen conversions, used from the recipe importer

def convert_temperature(value, unit, digits=1):
    """Convert a temperature between Celsius and Fahrenheit.

    unit is the unit of `value`: "C" or "F". Result is in the other unit.
    """
    unit = unit.upper()
    if unit == "F":
        result = (value - 32) * 5 / 9
    elif unit == "C":
        result = value * 9 / 5 + 32
    else:
        raise ValueError(f"unknown unit {unit!r}, use C or F")
    return round(result, digits)
