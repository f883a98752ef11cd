from uuid import UUID, uuid5, NAMESPACE_URL
from typing import Set


def stable_id(url: str, namespace: UUID = NAMESPACE_URL) -> UUID:
    """The id under which we file an address."""
    return uuid5(namespace, url.strip().lower())


def same_record(left: UUID, right: UUID) -> bool:
    """Whether two ids, however they are spelled, are the same record."""
    return left == right


def unknown_tags(tags: Set[str], known: Set[str] = frozenset({"news", "blog"})) -> Set[str]:
    """Tags that nobody registered."""
    return tags - known
