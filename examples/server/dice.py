"""A function of the host program, which a tool of a bundle names by its key."""

import random

from toolcrib import Context, registered


@registered("samples.roll")
def roll(context: Context, arguments: dict[str, int]) -> list[int]:
    return [random.randint(1, arguments["sides"]) for _ in range(arguments["count"])]
