def exact_text(text: str, strip: bool = False) -> str:
    """Give a text back as it is, blanks and all."""
    if "\x00" in text:
        raise ValueError("text has a NUL")
    return text.strip() if strip else text


def number_words(text: str) -> list[str]:
    """Words that are made of digits, as they are written."""
    return [w for w in text.split() if w.isdigit()]
