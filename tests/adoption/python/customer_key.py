from typing import Optional, Union


def customer_key(number: Union[int, str], branch: Optional[str] = None) -> str:
    """Key of a customer in the archive. Old numbers are texts with leading zeros."""
    if isinstance(number, bool):
        raise TypeError("number is not yes or no")
    kind = "new" if isinstance(number, int) else "old"
    return ":".join(filter(None, [branch, kind, str(number)]))


def archive_page(ids: list[Union[str, int, None]], size: int = 2 * 5) -> list:
    """First ids of a page, unchanged."""
    if size > 1 << 10:
        raise ValueError("size is at most 1024")
    return ids[:size]
