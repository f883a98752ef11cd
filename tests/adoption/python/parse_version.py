def parse_version(text: str) -> tuple[int, int, int]:
    """Split a version such as v1.20.3 into its numbers."""
    parts = text.removeprefix("v").split(".")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        raise ValueError(f"not a version: {text!r}")
    major, minor, patch = map(int, parts)
    return major, minor, patch


def find_prerelease(text: str) -> str | None:
    """The part after the dash, if there is one."""
    _, dash, rest = text.partition("-")
    return rest if dash else None
