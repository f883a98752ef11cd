"""The part of a web address that names an article."""

import re


def make_slug(headline: str, words: int = 4) -> dict:
    found = re.findall(r"[a-z0-9]+", headline.lower())
    return {"slug": "-".join(found[:max(words, 0)]), "dropped": found[max(words, 0):]}
