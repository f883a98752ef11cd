"""Declare a table of the settings: its keys, each with a type, a default, a line of help and what reads it.

    class WeatherSettings(Table, name="weather"):
        units: str = setting(default="metric", read=read_text, opens=False, summary="the units of all answers")

Building a dataclass takes as long as the rest of a module, and most tables keep their defaults; so a Table is a plain class
that type checkers take for a frozen dataclass.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, dataclass_transform

from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

MAX_NUMBER = 2**31 - 1
T = TypeVar("T")


class Setting:
    """One key of a table. `name` is written `table.key`, as TOML may write it too."""

    __slots__ = ("adds", "by_variable", "default", "key", "opens", "read", "summary", "table")

    def __init__(
        self,
        *,
        default: object,
        read: Callable[[str, object], object],
        summary: str,
        opens: bool,
        adds: bool,
        by_variable: bool,
    ) -> None:
        self.default = default
        self.read = read
        self.summary = summary
        self.opens = opens
        self.adds = adds
        # A map is no line of text.
        self.by_variable = by_variable and not isinstance(default, dict)
        self.table = self.key = ""

    @property
    def name(self) -> str:
        """How messages call it; the one key of an array of tables is called like the array."""
        return f"{self.table}.{self.key}" if self.key else self.table

    @property
    def variable(self) -> str:
        """The variable that sets it, without the prefix."""
        return f"{self.table}_{self.key}".upper()

    def from_text(self, text: str) -> object:
        """The value that a variable writes: digits, true or false, words with commas between them, or a text."""
        if isinstance(self.default, bool):
            return {"true": True, "false": False}.get(text.lower(), text)
        if isinstance(self.default, int):
            return int(text) if text.isdecimal() and len(text) <= len(str(MAX_NUMBER)) else text
        if isinstance(self.default, (tuple, frozenset)):
            return [word.strip() for word in text.split(",") if word.strip()]
        return text


def setting(
    *,
    default: T,
    read: Callable[[str, object], T],
    summary: str,
    opens: bool = True,
    adds: bool = False,
    by_variable: bool = True,
) -> T:
    """Declare a key of a table.

    `read` is called with the name of the key and what was written, and raises ValueError for what it may not be. A key `opens`
    something unless its declaration says that it does no harm: settings inside another project are refused if they set such a
    key. With `adds`, the command line adds to what is set. Maps and lists of tables are not to be set `by_variable`.
    """
    return Setting(  # type: ignore[return-value]  # an instance of the table has the value under this name
        default=default, read=read, summary=summary, opens=opens, adds=adds, by_variable=by_variable
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
class Table:
    """The values of one table: `SandboxSettings(jobs=2)` has the defaults but for `jobs`.

    `said` names the keys that were given. With `is_array` the file writes `[[name]]`, and the only key holds its items.
    """

    table_name: ClassVar[str]
    is_array: ClassVar[bool]
    declared: ClassVar[Mapping[str, Setting]]
    said: ClassVar[frozenset[str]]

    def __init_subclass__(cls, *, name: str, is_array: bool = False) -> None:
        cls.table_name = name
        cls.is_array = is_array
        cls.declared = {key: value for key, value in vars(cls).items() if isinstance(value, Setting)}
        if taken := sorted(cls.declared.keys() & vars(Table).keys()):
            raise TypeError(f"{cls.__name__}: a table has {taken[0]!r} of its own; call the key otherwise")
        for key, each in cls.declared.items():
            each.table, each.key = name, "" if is_array else key

    def __init__(self, **values: object) -> None:
        read = {key: read_value(self.find(key), value) for key, value in values.items()}
        self.__dict__.update({key: each.default for key, each in self.declared.items()}, **read, said=frozenset(read))

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """A table of values that were read already."""
        table = cls()
        table.__dict__.update(values, said=frozenset(values))
        return table

    @classmethod
    def find(cls, key: str) -> Setting:
        """The declaration of a key; raises SettingsError for one that is unknown."""
        if key not in cls.declared:
            raise SettingsError(f"unknown setting {cls.table_name}.{key}{hint_at(key, cls.declared, cls.table_name)}")
        return cls.declared[key]

    @property
    def values(self) -> dict[str, object]:
        """All values by their keys."""
        return {key: self.__dict__[key] for key in self.declared}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are frozen; make another {type(self).__name__} to set {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.values.values()))

    def __repr__(self) -> str:
        said = ", ".join(f"{key}={value!r}" for key, value in self.values.items() if key in self.said)
        return f"{type(self).__name__}({said})"


def read_value(declared: Setting, value: object, name: str = "") -> object:
    """Read a value as its key is declared; `name` is how whoever wrote it calls the key."""
    try:
        return declared.read(name or declared.name, value)
    except ValueError as problem:
        raise SettingsError(str(problem)) from problem


def hint_at(name: str, known: Iterable[str], table: str = "") -> str:
    """A hint at the name that was perhaps meant, else at all of them."""
    import difflib

    prefix = f"{table}." if table else ""
    near = difflib.get_close_matches(name, list(known), n=1)
    return (
        f"; did you mean {prefix}{near[0]}?"
        if near
        else f"; known are {', '.join(prefix + key for key in sorted(known))}"
    )


def read_words(name: str, value: object) -> tuple[str, ...]:
    """A list of texts, each once."""
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ValueError(f'{name} must be a list of texts, such as {name} = ["…"]')
    if not all(isinstance(word, str) and word.strip() and "\0" not in word for word in value):
        raise ValueError(f"{name} must hold texts only, none of them empty")
    return tuple(dict.fromkeys(value))


def read_word_set(name: str, value: object) -> frozenset[str]:
    """A list of texts whose order means nothing."""
    return frozenset(read_words(name, value))


def read_names(name: str, value: object) -> tuple[str, ...]:
    """Names of variables or secrets."""
    words = read_words(name, value)
    for word in words:
        if not (word.isidentifier() and word.isascii()):
            raise ValueError(f"{name}: {word!r:.80} is no name of a variable; write letters, digits and '_'")
    return words


def read_positive(name: str, value: object) -> int:
    """A whole number greater than 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_NUMBER:
        raise ValueError(f"{name} must be a whole number greater than 0 and at most {MAX_NUMBER}, not {value!r:.80}")
    return value


def read_switch(name: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {value!r}")
    return value


def read_path(name: str, value: object) -> Path:
    """The path of a file or folder."""
    if not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value):
        raise ValueError(f"{name} must be a path, not {value!r:.80}")
    return Path(value)


def read_text(name: str, value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{name} must be a text, not {value!r:.80}")
    return value
