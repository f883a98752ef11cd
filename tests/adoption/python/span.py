from typing import Literal, Optional, TypedDict, overload

try:
    from typing import NotRequired, Required
except ImportError:
    from typing_extensions import NotRequired, Required


class Base(TypedDict):
    id: int


class Item(Base, total=False):
    label: Required[str]
    tags: list[Literal["a", "b"]]
    parent: Optional["Item"]


@overload
def span(items: list[Item]) -> int: ...
@overload
def span(items: list[Item], key: str) -> str: ...
def span(items, key=None):
    """Measure items.

    Args:
        items (list[Item]): The items.
        key (str, optional): The key to show. Defaults to None.
    """
    if key is None:
        return max(item["id"] for item in items)
    return ",".join(str(item.get(key, "-")) for item in items)
