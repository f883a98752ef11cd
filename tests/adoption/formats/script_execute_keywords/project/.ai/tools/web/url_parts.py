__version__ = "1.0.0"
__tool_type__ = "script"
__executor_id__ = "python_runtime"
__category__ = "web"
__tool_description__ = "Take a URL apart"

from urllib.parse import parse_qs, urlsplit


def execute(url: str, part: str = "host"):
    """Take a URL apart.

    Args:
        url: The URL
        part: host, path or query
    """
    split = urlsplit(url)
    if part == "host":
        return split.hostname
    if part == "path":
        return split.path
    if part == "query":
        return parse_qs(split.query)
    raise ValueError(f"unknown part {part}")
