from collections.abc import Iterable, Mapping, Sequence


def best_rounds(scores: Mapping[int, Sequence[int]], top: int = 1) -> dict[int, int]:
    """Best rounds of a quiz.

    Args:
        scores: Points of all teams by the number of the round.
        top: How many rounds.
    """
    if any(not isinstance(r, int) for r in scores):
        raise TypeError("rounds are numbers")
    sums = {r: sum(points) for r, points in scores.items()}
    best = sorted(sums, key=lambda r: (-sums[r], r))[:top]
    return {r: sums[r] for r in best}


def champions(results: Iterable[tuple[str, int]]) -> frozenset[str]:
    """Who has the most points."""
    results = list(results)
    if not results:
        raise ValueError("no results")
    most = max(points for _, points in results)
    return frozenset(name for name, points in results if points == most)
