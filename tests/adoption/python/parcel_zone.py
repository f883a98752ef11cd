"""Tell the zone of a parcel."""
def parcel_zone(postcode: str, kilos: float = 1.0) -> str:
    """Tell the zone of a parcel.

    Args:
        postcode: Five digits.
        kilos: The weight.
    """
    zone = "inland" if postcode.startswith("1") else "abroad"
    return f"{zone}/{kilos:g}"


if __name__ == "__main__":
    print(parcel_zone("12345"))
