"""Loan maths for the broker desk."""

MONTHS_PER_YEAR = 12
DEFAULT_RATE = 3.6


def monthly_payment(principal: float, years: int, rate: float = DEFAULT_RATE) -> float:
    """Monthly instalment of an annuity loan.

    Args:
        principal (float): Amount borrowed, in euros.
        years (int): Duration of the loan.
        rate (float, optional): Yearly interest in percent. Defaults to 3.6.

    Returns:
        float: The instalment, rounded to cents.

    Raises:
        ValueError: If principal or years is not positive.
    """
    _check(principal, years)
    n = years * MONTHS_PER_YEAR
    r = rate / 100 / MONTHS_PER_YEAR
    if r == 0:
        return round(principal / n, 2)
    return round(principal * r / (1 - (1 + r) ** -n), 2)


def total_interest(principal: float, years: int, rate: float = DEFAULT_RATE) -> float:
    """What the loan costs on top of the principal.

    Args:
        principal: Amount borrowed, in euros.
        years: Duration of the loan.
        rate: Yearly interest in percent.
    """
    payment = monthly_payment(principal, years, rate)
    return round(payment * years * MONTHS_PER_YEAR - principal, 2)


def _check(principal: float, years: int) -> None:
    if principal <= 0 or years <= 0:
        raise ValueError("principal and years must be positive")
