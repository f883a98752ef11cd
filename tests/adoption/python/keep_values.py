from typing import Callable


def keep_values(values: list[int], rule: Callable[[int], bool], on_hit=print) -> list[int]:
    """Keep the values for which the rule holds."""
    kept = []
    for v in values:
        if rule(v):
            on_hit(v)
            kept.append(v)
    return kept
