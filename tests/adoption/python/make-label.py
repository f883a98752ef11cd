#!/usr/bin/env python3
"""Labels for jars."""
from enum import IntEnum, StrEnum

__all__ = ["make_label"]


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Fruit(StrEnum):
    APPLE = "apple"
    PLUM = "plum"


def make_label(fruit: Fruit, year: int, size: Size = Size.SMALL) -> str:
    """The text of a label."""
    text = f"{fruit.title()} {year}"
    return boxed(text) if size == Size.LARGE else text


def boxed(text):
    bar = "+" + "-" * len(text) + "+"
    return f"{bar}\n|{text}|\n{bar}"
