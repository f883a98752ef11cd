"""Secrets that were handed out, hidden in whatever is told afterwards."""

from __future__ import annotations

import logging
import threading
import traceback

from toolcrib.ground.secrets.readings import joined, readings
from toolcrib.ground.secrets.secret import MASK
from toolcrib.ground.secrets.spelling import spellings

# Secrets that are changed again and again must not fill the memory; the oldest are forgotten.
MAX_VALUES = 1_000
# Words that stand one after the other on many lines make up every short value sooner or later.
SHORTEST_JOINED = 16


class Masking:
    """Remembers values and hides them in texts, in whichever of the usual spellings."""

    def __init__(self) -> None:
        self._values: dict[str, frozenset[str]] = {}
        self._spelled: tuple[str, ...] = ()
        self._changing = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._spelled)

    def add(self, value: str) -> None:
        """Hide this value from now on."""
        if value in self._values:
            return
        with self._changing:
            values = {**self._values, value: spellings(value)}
            while len(values) > MAX_VALUES:
                del values[next(iter(values))]
            every = {text for spelled in values.values() for text in spelled}
            # The longest first: one that begins like another must not leave its end behind.
            self._spelled = tuple(sorted(every, key=len, reverse=True))
            self._values = values

    def is_in(self, text: str) -> bool:
        """Whether there is anything in the text that has to be hidden."""
        return any(spelling in text for spelling in self._spelled) or self._is_meant(text)

    def hide(self, text: str) -> str:
        """The text without any of the values; only the mask where one stands in it behind escapes of any kind."""
        for spelling in self._spelled:
            text = text.replace(spelling, MASK)
        return MASK if self._is_meant(text) else text

    def _is_meant(self, text: str) -> bool:
        """Whether a value stands in another reading of the text."""
        if not self._spelled:
            return False
        others = list(readings(text))
        if any(spelling in other for other in others for spelling in self._spelled):
            return True
        lines = [line for other in (text, *others) if (line := joined(other))]
        return any(spelling in line for line in lines for spelling in self._spelled if len(spelling) >= SHORTEST_JOINED)

    def hide_in(self, value: object) -> object:
        """A JSON value in which every text is hidden so, the names of members too."""
        if not self._spelled:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self.hide_in(key): self.hide_in(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(item) for item in value]
        return value


class HideSecrets(logging.Filter):
    """Hides secrets in records of a log: message, arguments, further fields, and what was raised.

    It belongs on a handler: a logger asks its filters only about what is logged through itself.
    """

    def __init__(self, masking: Masking) -> None:
        super().__init__()
        self._masking = masking

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, fit to be read by anybody."""
        if not self._masking:
            return True
        record.msg, record.args = _message_of(record), ()
        if record.exc_info and record.exc_info[1] is not None:
            self._hide_raised(record, record.exc_info[1])
        for name, field in tuple(record.__dict__.items()):
            if isinstance(field, str | dict | list | tuple) and name != "exc_info":
                record.__dict__[name] = self._masking.hide_in(field)
        return True

    def _hide_raised(self, record: logging.LogRecord, raised: BaseException) -> None:
        """Replace what was raised if it tells anything, or if what led to it does: whoever formats it sees all of that."""
        record.exc_text = record.exc_text or "".join(traceback.format_exception(raised)).rstrip("\n")
        texts = record.exc_text, str(raised)
        if any(self._masking.hide(text) != text for text in texts):
            stand_in = _stand_in(raised, self._masking.hide(texts[1]))
            record.exc_info = type(stand_in), stand_in, raised.__traceback__


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - the arguments are foreign code; a log must not fail over them
        return f"{record.msg} (its arguments do not fit)"


def _stand_in(raised: BaseException, text: str) -> Exception:
    """An exception by the same name that says only this, and leads to no other."""
    stand_in: Exception = type(type(raised).__name__, (Exception,), {})(text)
    return stand_in.with_traceback(raised.__traceback__)
