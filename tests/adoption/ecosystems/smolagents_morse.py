# /// script
# dependencies = ["smolagents"]
# ///
from smolagents import tool

CODE = {"a": ".-", "b": "-...", "c": "-.-.", "e": ".", "n": "-.", "o": "---", "s": "...", "t": "-"}


@tool
def to_morse(text: str, gap: str = " ") -> str:
    """
    Translate a short text into Morse code.

    Args:
        text: The text; letters that have no code are left out.
        gap: What stands between two letters.
    """
    return gap.join(CODE[ch] for ch in text.lower() if ch in CODE)


@tool
def from_morse(code: str) -> str:
    """
    Translate Morse code back into letters.

    Args:
        code: Letters separated by blanks.
    """
    back = {v: k for k, v in CODE.items()}
    return "".join(back[letter] for letter in code.split())
