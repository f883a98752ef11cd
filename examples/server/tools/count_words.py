"""Models miscount; this does not."""

from collections import Counter


def count_words(text: str, top: int = 3) -> dict[str, int]:
    """Count the words of a text, the most frequent first.

    Args:
        text: The text.
        top: How many words to report.
    """
    return dict(Counter(text.lower().split()).most_common(top))
