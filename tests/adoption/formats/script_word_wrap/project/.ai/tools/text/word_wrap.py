# .ai/tools/text/word_wrap.py
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Wrap a text at a width"

import textwrap


def main(text: str, width: int = 20) -> list:
    """
    Wrap a text.

    Args:
        text: The text
        width: Longest line (default: 20)
    """
    return textwrap.wrap(text, width)
