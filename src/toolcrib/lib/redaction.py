"""Redact secrets in JSON values before they are shown: by the names of fields and by well-known forms."""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
SECRET_WORDS = frozenset({"pwd", "pass", "authorization", "auth", "cookie", "signature", "bearer"})
SECRET_ENDINGS = (
    *("password", "passwd", "passphrase", "secret", "secrets"),
    *("token", "apikey", "credential", "credentials"),
)

# Words of a name: separated by anything but letters and digits, or by a capital letter.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# A slot that is filled when the tool runs is not a secret; showing it helps to find the reason of a refusal.
_FILLED_IN = re.compile(r"(?:(?:Bearer|Basic|Token) +)?(?:\$\{\w+\}|\{\w+\})")
_OPTION = re.compile(r"--?([\w-]+)")
_ASSIGNED = re.compile(r"(?<![\w-])([\w-]+)=(?!\$?\{)[^&\s]+")
# Secrets by their form: user and password in a URL, credentials of a header, keys of well-known services.
_RECOGNISED = re.compile(
    r"(?<=://)[^/\s@]+(?=@)"
    r"|(?i:(?<=\bbearer )|(?<=\bbasic ))[\w.~+/=-]{8,}"
    r"|\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[a-z]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,500}\.[\w-]+\.[\w-]*|-----BEGIN[\s\S]*"
)


def hide_secrets(value: object, name: str = "") -> object:
    """A copy of a JSON value in which secrets, and all values with a secret's name, are replaced by HIDDEN."""
    if isinstance(value, dict):
        return {key: hide_secrets(member, name if is_secret(name) else str(key)) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [hide_secrets(item, name if is_secret(name) else _option(before)) for before, item in _pairs(value)]
    if value is None or isinstance(value, bool):
        return value
    if is_secret(name):
        return value if isinstance(value, str) and _FILLED_IN.fullmatch(value) else HIDDEN
    return _hide_in_text(value) if isinstance(value, str) else value


def is_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: `api_key`, `Authorization`, `dbPassword`, but not `max_tokens`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] == "key":
        return True
    return any(word in SECRET_WORDS or word.endswith(SECRET_ENDINGS) for word in words)


def _hide_in_text(text: str) -> str:
    text = _ASSIGNED.sub(lambda found: f"{found[1]}={HIDDEN}" if is_secret(found[1]) else found[0], text)
    return _RECOGNISED.sub(HIDDEN, text)


def _option(before: object) -> str:
    """The name of the option that the preceding word is, whose value the next word is."""
    found = _OPTION.fullmatch(before) if isinstance(before, str) else None
    return found[1] if found else ""


def _pairs(items: list[object] | tuple[object, ...]) -> list[tuple[object, object]]:
    return list(zip([None, *items], items, strict=False))
