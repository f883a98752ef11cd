import sys
from typing import Generic, Self, TypeVar
from dataclasses import dataclass, asdict
from collections import namedtuple

T = TypeVar("T")
Point = namedtuple("Point", "x y", defaults=[0])


@dataclass
class Box(Generic[T]):
    content: T
    label: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Tree:
    name: str
    children: "tuple[Tree, ...]" = ()

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children)

    @classmethod
    def leaf(cls, name) -> Self:
        return cls(name)


def unpack(box: Box[int], tree: Tree, at: Point = Point(1, 2)) -> tuple[int, int, Point]:
    """Unpack a box."""
    return box.content + 1, tree.size(), Point(at.x * 2, at.y)
