from collections import OrderedDict, namedtuple, defaultdict
from fractions import Fraction

Entry = namedtuple("Entry", "who start stop")

WEEK = [
    Entry("ann", 8, 12), Entry("bob", 9, 17), Entry("ann", 13, 17.5), Entry("cyd", 8, 8),
]


def hours_by_member(minimum: float = 0) -> dict:
    """Hours everybody worked this week, with at least `minimum` of them."""
    total = defaultdict(float)
    for who, start, stop in WEEK:
        total[who] += stop - start
    return OrderedDict((w, h) for w, h in sorted(total.items()) if h >= minimum)


def entries_of(who: str) -> list:
    """All entries of one person."""
    found = [e for e in WEEK if e.who == who]
    if not found:
        raise LookupError(f"{who} has no entries")
    return found
