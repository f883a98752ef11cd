def dose(weight, per_kg=0.5, times=None, unit="mg", *, max_dose=None):
    """Dose of a medicine.

    Parameters
    ----------
    weight : float
        Weight in kg.
    per_kg : float, optional
        Dose for each kg (the default is 0.5).
    times : int or None
        How often a day; once if None.
    unit : {'mg', 'g'}
        Unit of the result.
    max_dose : float or None, optional
        Never more than that, in mg.

    Returns
    -------
    dict
    """
    if weight <= 0:
        raise ValueError("weight must be positive")
    if unit not in ("mg", "g"):
        raise ValueError("unit must be mg or g")
    amount = weight * per_kg
    if max_dose is not None:
        amount = min(amount, max_dose)
    if unit == "g":
        amount /= 1000
    return {"amount": amount, "unit": unit, "times": times or 1}
