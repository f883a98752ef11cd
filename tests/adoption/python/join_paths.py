def join_route(*segments: str, trailing_slash: bool = False) -> str:
    """Join the segments of an API route.

    Args:
        segments: Parts of the route; slashes at their ends do not matter.
        trailing_slash: End the route with a slash.
    """
    cleaned = [s.strip("/") for s in segments if s.strip("/")]
    if not cleaned:
        raise ValueError("no segments given")
    return "/" + "/".join(cleaned) + ("/" if trailing_slash else "")
