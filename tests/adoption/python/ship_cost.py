def ship_cost(weight, express=False, insured_value=None, codes=("DE", "FR")):
    """Compute the cost of shipping.

    Args:
        weight (float): The weight in kg.
        express (bool, optional): Faster. Defaults to False.
        insured_value (Optional[float]): The value insured.
        codes (list[str]): Countries.

    Returns:
        float: the cost

    Raises:
        ValueError: if the weight is negative
    """
    if weight < 0:
        raise ValueError("weight is negative")
    cost = 5 + weight * 2 + (10 if express else 0) + (insured_value or 0) * 0.01
    return {"cost": cost, "codes": codes}
