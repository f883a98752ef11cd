"""Link checker plugin. The host calls execute(url, tool)."""
from urllib.parse import parse_qs, urlsplit


def execute(url, tool):
    """
    url: the address to take apart
    tool: which part is wanted, one of host, path, query
    """
    parts = urlsplit(url)
    if not parts.scheme:
        raise ValueError("url has no scheme")
    if tool == "host":
        return parts.hostname
    if tool == "path":
        return parts.path or "/"
    if tool == "query":
        return parse_qs(parts.query)
    raise ValueError("tool must be host, path or query")
