# /// script
# requires-python = ">=3.10"
# dependencies = ["langchain-core"]
# ///
"""Small text helpers that the editor agent binds with llm.bind_tools([...])."""

from langchain_core.tools import tool


@tool
def count_vowels(text: str) -> int:
    """Count the vowels in a text."""
    return sum(ch in "aeiou" for ch in text.lower())


@tool
def headline(text: str, max_words: int = 6) -> str:
    """Turn a sentence into a headline of at most max_words words."""
    words = text.split()[:max_words]
    return " ".join(w.capitalize() for w in words)


tools = [count_vowels, headline]
