"""The part of a web address that names an article."""

import re


def make_slug(headline: str, words: int = 4) -> dict[str, object]:
    found = re.findall(r"[a-z0-9]+", headline.lower())
    kept = max(words, 0)
    return {"slug": "-".join(found[:kept]), "dropped": found[kept:]}
