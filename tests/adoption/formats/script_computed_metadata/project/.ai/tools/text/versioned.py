import os

__version__ = os.environ.get("TOOL_VERSION", "1.0.0")
__tool_type__ = "python"
__executor_id__ = "python" + "_runtime"
__category__ = "text"
__tool_description__ = "Reverse " + "a text"


def main(text: str) -> str:
    return text[::-1]
