import re
import unicodedata


def slugify(title, max_length=60, separator="-"):
    """Make the part of an address out of a headline.

    :param title: headline as the editor typed it
    :type title: str
    :param max_length: cut after that many characters, defaults to 60
    :type max_length: int, optional
    :param str separator: what goes between the words, defaults to "-"
    :returns: the slug
    :rtype: str
    :raises ValueError: when nothing is left of the title
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    if not words:
        raise ValueError("nothing left of the title")
    return separator.join(words)[:max_length].rstrip(separator)


if __name__ == "__main__":
    import sys

    print(slugify(" ".join(sys.argv[1:])))
