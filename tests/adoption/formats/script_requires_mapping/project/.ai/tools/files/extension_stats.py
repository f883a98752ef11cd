__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "files"
__tool_description__ = "Count file names by extension"
__requires__ = {"capabilities": ["fs.read"], "python": ">=3.10"}

from collections import Counter
from pathlib import PurePath


def main(names: list[str]) -> dict:
    return dict(Counter(PurePath(name).suffix or "none" for name in names))
