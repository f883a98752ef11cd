__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Turn a title into the last part of a web address"

import re
import unicodedata


def main(title: str, limit: int = 40) -> str:
    """Turn a title into the last part of a web address.

    Args:
        title: The title.
        limit: How many letters at the most.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:limit]
