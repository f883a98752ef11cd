"""Translations of the page: JSON files in the data folder of the project.

No tool can write there. In the workspace a tool could swap the labels of the buttons that approve and refuse its calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.files import read_small

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "languages"
MAX_BYTES = 1_000_000
MAX_LANGUAGES = 100
# A tag of BCP 47, such as `de` or `pt-BR`.
_NAME = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")


class Languages:
    """The languages of a project; none without a data folder."""

    def __init__(self, data: Path | None) -> None:
        self._folder = None if data is None else data / FOLDER

    def names(self) -> list[str]:
        """The languages that have a file."""
        if self._folder is None or not self._folder.is_dir():
            return []
        found = sorted(path.stem for path in self._folder.glob("*.json") if _NAME.fullmatch(path.stem))
        return found[:MAX_LANGUAGES]

    def read(self, name: str) -> dict[str, str] | None:
        """The texts of a language by id; None if there is no file, or if it is not a JSON object."""
        if self._folder is None or not _NAME.fullmatch(name):
            return None
        document = read_small(self._folder / f"{name}.json", MAX_BYTES)
        try:
            texts = None if document is None else orjson.loads(document)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(texts, dict):
            return None
        return {key: text for key, text in texts.items() if isinstance(text, str)}
