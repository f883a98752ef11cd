from string import ascii_uppercase


def seat_plan(rows: int, /, per_row: int = 4, *, aisle_after: int = 2, skip: list[int] = []) -> list[str]:
    """Names of the seats of a bus.

    rows: how many rows there are
    """
    if rows < 0:
        raise ValueError("rows is negative")
    plan = []
    for row in range(1, rows + 1):
        if row in skip:
            continue
        seats = [f"{row}{ascii_uppercase[i]}" for i in range(per_row)]
        plan.append("".join(seats[:aisle_after]) + "|" + "".join(seats[aisle_after:]))
    return plan
