"""small text functions, one per line mostly"""
import re
from functools import partial

squeeze = partial(re.sub, r"\s+", " ")
shout = lambda text: text.upper() + "!"


def initials(name): return "".join(w[0].upper() for w in name.split())


def mask(text, keep: "int" = 4, char: 'str' = "*") -> "str":
    "Hide all but the last characters."
    if keep < 0: raise ValueError("keep must not be negative")
    return char * max(len(text) - keep, 0) + (text[-keep:] if keep else "")


def _secret(): return 42
