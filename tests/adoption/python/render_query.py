from urllib.parse import urlencode


def render_query(base: str, **params) -> str:
    """Address with query parameters; pass any parameter you like."""
    if "?" in base:
        raise ValueError("base has a query already")
    if not params:
        return base
    return base + "?" + urlencode(sorted(params.items()))
