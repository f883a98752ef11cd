from typing import Literal, Optional, Union

Zone = Literal["domestic", "eu", "world"]
BASE = {"domestic": 4.9, "eu": 11.5, "world": 24.0}


def quote(
    weight_kg: Union[int, float],
    zone: Zone,
    speed: Literal["standard", "express"] = "standard",
    insured_value: Optional[float] = None,
) -> dict:
    """Quote a parcel.

    Weight over 30 kg is freight, and not quoted here.
    """
    if not 0 < weight_kg <= 30:
        raise ValueError("weight must be above 0 and at most 30 kg")
    price = BASE[zone] + max(0, weight_kg - 2) * 0.8
    if speed == "express":
        price *= 1.5
    lines = [{"what": "freight", "price": round(price, 2)}]
    if insured_value is not None:
        lines.append({"what": "insurance", "price": round(insured_value * 0.01, 2)})
    return {"total": round(sum(l["price"] for l in lines), 2), "lines": lines}
