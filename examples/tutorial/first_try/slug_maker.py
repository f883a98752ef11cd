"""A first try: right for the first example, and it keeps a list of headlines, which the request does not ask for."""

from pathlib import Path


def make_slug(headline: str, words: int = 4) -> dict[str, object]:
    Path("headlines.txt").write_text(headline)
    found = headline.lower().split()
    return {"slug": "-".join(found[:words]), "dropped": found[words:]}
