from enum import Flag, IntFlag, auto


class Access(Flag):
    READ = auto()
    WRITE = auto()
    SHARE = auto()


def permissions(access: Access) -> list[str]:
    """Name the rights in a set of rights."""
    return [right.name for right in Access if right in access]
