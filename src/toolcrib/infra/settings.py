"""Declare the tables of `toolcrib.toml`, and load settings from the file, the environment and the host program.

    class WeatherSettings(Table, name="weather"):
        units: str = setting(default="metric", read=read_text, opens=False, summary="the units of all answers")

Later sources override earlier ones. Each table is declared by the feature that owns it, registered by name, and imported only
if it is set. Creating a dataclass takes as long as the rest of a module, and most tables keep their defaults; so a Table is a
plain class that type checkers treat as a frozen dataclass. Settings are loaded once by the outermost code; other code asks for
a table, or is passed values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from toolcrib.lib.documents import read_toml
from toolcrib.model.errors import SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

MAX_NUMBER = 2**31 - 1
T = TypeVar("T")


class Setting:
    """One key of a table; its `name` is `table.key`, which is also valid TOML."""

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
        # A map cannot be written as one text.
        self.by_variable = by_variable and not isinstance(default, dict)
        self.table = self.key = ""

    @property
    def name(self) -> str:
        """The name in messages; the only key of an array of tables has the name of the array."""
        return f"{self.table}.{self.key}" if self.key else self.table

    @property
    def variable(self) -> str:
        """The environment variable that sets it, without the prefix."""
        return f"{self.table}_{self.key}".upper()

    def from_text(self, text: str) -> object:
        """Parse the text of a variable by the type of the default: a number, true or false, a list with commas, or a text."""
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

    `read` is called with the name of the key and the value, and raises ValueError for an invalid one. A key `opens` something
    unless its declaration says that it is harmless: settings inside another project are refused if they set such a key. With
    `adds`, the command line adds to the value instead of replacing it. Maps and lists of tables cannot be set `by_variable`.
    """
    return Setting(  # type: ignore[return-value]  # an instance of the table has the value under this name
        default=default, read=read, summary=summary, opens=opens, adds=adds, by_variable=by_variable
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
class Table:
    """The values of one table: `SandboxSettings(jobs=2)` has the defaults for all other keys.

    `explicit_keys` are the keys that were set, even to their defaults. With `is_array` the table is written `[[name]]`, and its only key holds the items.
    `moved` maps former keys to what to write instead.
    """

    table_name: ClassVar[str]
    is_array: ClassVar[bool]
    is_map: ClassVar[bool] = False
    moved: ClassVar[Mapping[str, str]]
    declared: ClassVar[Mapping[str, Setting]]
    explicit_keys: ClassVar[frozenset[str]]

    def __init_subclass__(cls, *, name: str, is_array: bool = False, moved: Mapping[str, str] | None = None) -> None:
        cls.table_name = name
        cls.is_array = is_array
        cls.moved = moved or {}
        cls.declared = {key: value for key, value in vars(cls).items() if isinstance(value, Setting)}
        if taken := sorted(cls.declared.keys() & vars(Table).keys()):
            raise TypeError(f"{cls.__name__}: a table has {taken[0]!r} of its own; call the key otherwise")
        for key, each in cls.declared.items():
            each.table, each.key = name, "" if is_array or cls.is_map else key

    def __init__(self, **values: object) -> None:
        read = {key: read_value(self.find(key), value) for key, value in values.items()}
        self.__dict__.update(
            {key: each.default for key, each in self.declared.items()}, **read, explicit_keys=frozenset(read)
        )

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """A table from values that are already parsed."""
        table = cls()
        table.__dict__.update(values, explicit_keys=frozenset(values))
        return table

    @classmethod
    def name_of(cls, key: str) -> str:
        """The name of a key in messages and `places`."""
        return cls.find(key).name

    @classmethod
    def find(cls, key: str) -> Setting:
        """The declaration of a key; raises SettingsError for one that is unknown."""
        if key in cls.moved:
            raise SettingsError(f"{cls.table_name}.{key} is no longer a setting; {cls.moved[key]}")
        if key not in cls.declared:
            near = _nearest(key, cls.declared)
            known = ", ".join(f"{cls.table_name}.{each}" for each in sorted(cls.declared))
            hint = f"did you mean {cls.table_name}.{near}?" if near else f"known are {known}"
            raise SettingsError(f"unknown setting {cls.table_name}.{key}; {hint}")
        return cls.declared[key]

    @property
    def values(self) -> dict[str, object]:
        """All values by key."""
        return {key: self.__dict__[key] for key in self.declared}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are frozen; make another {type(self).__name__} to set {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.values.values()))

    def __repr__(self) -> str:
        written = ", ".join(f"{key}={value!r}" for key, value in self.values.items() if key in self.explicit_keys)
        return f"{type(self).__name__}({written})"


class MapTable(Table, name=""):
    """A table whose keys the operator chooses: `GrantsSettings(lines={"grep-log": ["shell.execute"]})`.

    Its only declared key has a mapping as its default, parses the value of each word, and holds all of them; words that are not
    set keep their defaults. `example` is a line of the table, for messages.
    """

    is_map: ClassVar[bool] = True
    example: ClassVar[str]

    def __init__(self, **values: object) -> None:
        key = next(iter(self.declared))
        words = values.get(key, {})
        if values.keys() - {key} or not isinstance(words, Mapping):
            raise SettingsError(f"{type(self).__name__} takes {key}, a mapping such as {{{self.example}}}")
        self._hold({word: read_value(self.find(word), value, self.name_of(word)) for word, value in words.items()})

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """A table from values that are already parsed, by word."""
        table = cls()
        table._hold(values)
        return table

    @classmethod
    def name_of(cls, key: str) -> str:
        """The name of a word in messages and `places`, which is also valid TOML."""
        return f'{cls.table_name}."{key:.80}"'

    @classmethod
    def find(cls, key: str) -> Setting:
        """The declaration of all words; raises SettingsError for an invalid word."""
        try:
            cls.check_word(key)
        except ValueError as problem:
            raise SettingsError(f"{cls.name_of(key)}: {problem}") from problem
        return next(iter(cls.declared.values()))

    @classmethod
    def check_word(cls, word: str) -> None:
        """Raise ValueError for an invalid word."""

    @property
    def values(self) -> dict[str, object]:
        """All values by word."""
        return dict(self.__dict__[next(iter(self.declared))])

    def _hold(self, values: Mapping[str, object]) -> None:
        ((key, declared),) = self.declared.items()
        usual: Mapping[str, object] = declared.default  # type: ignore[assignment]  # the default of a map is a mapping
        self.__dict__.update({key: {**usual, **values}, "explicit_keys": frozenset(values)})


def read_value(declared: Setting, value: object, name: str = "") -> object:
    """Parse a value by the declaration of its key; `name` is the name of the key in messages."""
    try:
        return declared.read(name or declared.name, value)
    except ValueError as problem:
        raise SettingsError(str(problem)) from problem


def read_words(name: str, value: object) -> tuple[str, ...]:
    """A list of texts, without duplicates."""
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ValueError(f'{name} must be a list of texts, such as {name} = ["…"]')
    if not all(isinstance(word, str) and word.strip() and "\0" not in word for word in value):
        raise ValueError(f"{name} must hold texts only, none of them empty")
    return tuple(dict.fromkeys(value))


def read_word_set(name: str, value: object) -> frozenset[str]:
    """A list of texts without order."""
    return frozenset(read_words(name, value))


def read_names(name: str, value: object) -> tuple[str, ...]:
    """A list of names of variables or secrets."""
    words = read_words(name, value)
    for word in words:
        if not (word.isidentifier() and word.isascii()):
            raise ValueError(f"{name}: {word!r:.80} is not a name of a variable; write letters, digits and '_'")
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


# Default names of files and folders of a project, and of a user.
FILE_NAME = "toolcrib.toml"
DATA_FOLDER = ".toolcrib"
PROJECT_SCRIPTS = ".ai/tools"
USER_SCRIPTS = "~/.ai/tools"
ENVIRONMENT_PREFIX = "TOOLCRIB_"
# Variables that tools get, which are not settings; a tool that runs `crib` passes them on.
WORKSPACE = "TOOLCRIB_WORKSPACE"
GIVEN_TO_TOOLS = frozenset({WORKSPACE, "TOOLCRIB_CHANNEL"})
ENVIRONMENT = "the environment"
COMMAND_LINE = "the command line"
HOST_PROGRAM = "the host program"
BY_DEFAULT = "the default"
MAX_FILE_BYTES = 1_000_000
TableT = TypeVar("TableT", bound=Table)
# The declarations of tables by name; a lookup may import one.
Tables = Mapping[str, type[Table]]


def _read_protected_names(name: str, value: object) -> tuple[str, ...]:
    words = read_words(name, value)
    for word in words:
        if word.startswith("/") or ".." in word.split("/") or not word.strip("./"):
            raise ValueError(f"{name}: {word!r:.80} is not a path in the workspace; write a name, or a path from there")
    return words


class ProjectSettings(Table, name="project"):
    """The project itself."""

    data_dir: Path = setting(
        default=Path(DATA_FOLDER),
        read=read_path,
        summary="the folder of Toolcrib's own data, from the project folder; another one must lie outside the workspace",
    )


class WorkspaceSettings(Table, name="workspace"):
    """The folder that tools work in."""

    folder: Path = setting(
        default=Path(),
        read=read_path,
        summary="the folder that file tools and shell commands work in, from the project folder",
    )
    open: tuple[str, ...] = setting(
        default=(),
        read=_read_protected_names,
        summary="protected names of the workspace that tools may use all the same, such as `.env.test` or `.vscode/tasks.json`",
    )


class Settings:
    """The loaded settings: `settings.table(SandboxSettings).jobs`, or by name, `settings["sandbox"].jobs`.

    root: the project folder; without one nothing is stored on disk
    workspace: the folder that tools work in, resolved
    data: the folder of Toolcrib's own data, which may not exist yet; None without a project
    tables: the declarations of all tables, by name
    places: where each setting was set, by its name `table.key`; defaults are not in it
    """

    def __init__(
        self, root: Path | None, tables: Tables, values: Mapping[str, Table], places: Mapping[str, str]
    ) -> None:
        self.root = root
        self.places = places
        self.tables = tables
        self._values = dict(values)
        folder = self.table(WorkspaceSettings).folder
        workspace = folder if root is None else root / folder
        if not workspace.is_dir():
            raise SettingsError(f"workspace {str(workspace)!r} is not a folder; {self.where('workspace.folder')}")
        self.workspace = workspace.resolve()
        self.data = None if root is None else self._find_data(root)

    def _find_data(self, root: Path) -> Path:
        """The data folder. Its default name is protected everywhere; any other folder must be outside the workspace."""
        folder = root / self.table(ProjectSettings).data_dir
        if "project.data_dir" not in self.places:
            return folder
        real = folder.resolve()
        for place, what in ((self.workspace, "the workspace"), (root.resolve(), "the project")):
            if place.is_relative_to(real):
                raise SettingsError(
                    f"{folder} holds {what}; name a folder of its own: {self.where('project.data_dir')}"
                )
        if real.is_relative_to(self.workspace) and real != root.resolve() / ProjectSettings().data_dir:
            message = f"{folder} lies in the workspace {self.workspace}, where tools work; name a folder outside of it"
            raise SettingsError(f"{message}: {self.where('project.data_dir')}")
        return real

    def table(self, declaration: type[TableT]) -> TableT:
        """The values of a table, or its defaults if it is not set."""
        name = declaration.table_name
        if name not in self._values:
            self._values[name] = declaration()
        return self._values[name]  # type: ignore[return-value]  # stored under the name of its declaration

    def __getitem__(self, name: str) -> Any:
        """The values of a table by name, for code that does not import its declaration."""
        return self.table(self.tables[name])

    def explicit(self, name: str) -> dict[str, Any]:
        """The values of a table that were set, by key; empty for a table that is not set, whose declaration is not imported."""
        table = self._values.get(name)
        return (
            {} if table is None else {key: value for key, value in table.values.items() if key in table.explicit_keys}
        )

    def where(self, name: str) -> str:
        """Where a setting was set, for messages."""
        return f"{name} in {self.places[name]}" if name in self.places else f"{BY_DEFAULT} of {name}"


def load_settings(
    root: Path | None,
    environment: Mapping[str, str],
    tables: Tables,
    given: Mapping[str, object] | None = None,
    given_by: str = HOST_PROGRAM,
) -> Settings:
    """Load the settings of a project folder (None: no project), then the environment, then the `given` tables.

    `given` maps names of tables to a Table or a mapping of the same keys; None is ignored. Later values replace earlier ones,
    except that a grant on the command line is added to the others.
    """
    merged = _Merged(tables)
    if root is not None:
        merged.add_document(_read_file(root / FILE_NAME), FILE_NAME)
    merged.add_environment(environment)
    merged.add_document({name: values for name, values in (given or {}).items() if values is not None}, given_by)
    return Settings(root, tables, merged.make_tables(), merged.places)


def find_project(
    here: Path,
    cure: Callable[[Path, Path], str],
    tables: Tables,
    owner_of: Callable[[Path], int] = lambda path: path.stat().st_uid,
) -> Path:
    """The nearest folder with settings, from `here` upwards; otherwise `here`.

    Settings may load code, so a file of a parent folder is used only if it belongs to the caller, to root, or to the owner of
    `here`: any user may put a file into a shared folder such as /tmp. Raises SettingsError for settings that are not trusted;
    `cure` writes how to choose the folder that was found, or the other one.
    """
    for folder in (here, *here.parents):
        file = folder / FILE_NAME
        if not file.is_file():
            continue
        _refuse_inside_another(folder, cure, tables)
        if folder != here and owner_of(file) not in {os.getuid(), 0, owner_of(here)}:
            raise SettingsError(f"{file} belongs to another user; {cure(folder, here)}")
        return folder
    return here


def is_project(folder: Path) -> bool:
    """Whether the folder has settings, tools, or a data folder."""
    return any((folder / name).exists() for name in (FILE_NAME, "tools", PROJECT_SCRIPTS, DATA_FOLDER))


def _refuse_inside_another(folder: Path, cure: Callable[[Path, Path], str], tables: Tables) -> None:
    """Refuse settings inside another project that open something: tools of that project may have written them."""
    outer = next((place for place in folder.parents if (place / FILE_NAME).is_file()), None)
    if outer is None:
        return
    file = folder / FILE_NAME
    if opens := sorted(_opening(_read_file(file), tables)):
        message = f"{file} sets {opens[0]} inside the project {outer}, whose tools may have written it"
        raise SettingsError(f"{message}; {cure(folder, outer)}")


def _opening(document: Mapping[str, object], tables: Tables) -> Iterator[str]:
    """The settings of a document that open something; an undeclared setting counts as opening."""
    for name, content in document.items():
        declaration = tables.get(name)
        if declaration is not None and (declaration.is_array or declaration.is_map):
            yield from (each.name for each in declaration.declared.values() if each.opens)
        elif declaration is None or not isinstance(content, dict):
            yield name
        else:
            declared = declaration.declared
            yield from (f"{name}.{key}" for key in content if key not in declared or declared[key].opens)


def _read_file(file: Path) -> dict[str, object]:
    """The tables of the file; none if there is no file."""
    try:
        text = _read_text(file)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise SettingsError(f"{file}: {problem.strerror}; make it readable or remove it") from problem
    except UnicodeDecodeError as problem:
        raise SettingsError(f"{file}: not UTF-8 at byte {problem.start}; save it as UTF-8") from problem
    try:
        return read_toml(text, str(file))
    except ToolError as problem:
        raise SettingsError(problem.message) from problem


def _read_text(file: Path) -> str:
    if not file.is_symlink() and not file.exists():
        raise FileNotFoundError
    # An unreadable file must not be ignored: it may restrict something.
    if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
        raise SettingsError(f"{file} is not a file of at most {MAX_FILE_BYTES} bytes; correct it or remove it")
    return file.read_bytes().decode("utf-8-sig")


class _Merged:
    """The settings that were added so far, by table and key, and their places."""

    def __init__(self, tables: Tables) -> None:
        self.places: dict[str, str] = {}
        self._tables = tables
        self._values: dict[str, dict[str, object]] = {}

    def add_document(self, document: Mapping[str, object], place: str) -> None:
        """Add the tables of a file or of the caller; raises SettingsError with the place."""
        for name, content in document.items():
            try:
                for key, value in self._keys(name, content).items():
                    self._add(self._tables[name], key, value, place)
            except SettingsError as problem:
                raise SettingsError(f"{place}: {problem.message}") from problem

    def add_environment(self, environment: Mapping[str, str]) -> None:
        """Add the variables with our prefix; an unknown one raises SettingsError, because it may have been meant to restrict."""
        for variable in sorted(name for name in environment if name.startswith(ENVIRONMENT_PREFIX)):
            if variable in GIVEN_TO_TOOLS:
                continue
            try:
                name, key = self._find_variable(variable)
                declaration = self._tables[name]
                value = declaration.declared[key].from_text(environment[variable].strip())
                self._add(declaration, key, value, ENVIRONMENT, variable)
            except SettingsError as problem:
                raise SettingsError(f"{ENVIRONMENT}: {problem.message}") from problem

    def make_tables(self) -> dict[str, Table]:
        """The tables that were set."""
        return {name: self._tables[name].of(values) for name, values in self._values.items()}

    def _keys(self, name: str, content: object) -> Mapping[str, object]:
        """The values that a table sets, by key."""
        if name not in self._tables:
            what = f"unknown table [{name}]" if isinstance(content, (Mapping, Table)) else f"{name} stands in no table"
            raise SettingsError(f"{what}{self._hint(name)}")
        declaration = self._tables[name]
        if declaration.is_array:
            return dict.fromkeys(declaration.declared, content)
        if isinstance(content, declaration):
            return {key: value for key, value in content.values.items() if key in content.explicit_keys}
        if not isinstance(content, Mapping):
            line = f" and below it {declaration.example}" if issubclass(declaration, MapTable) else ""
            raise SettingsError(f"{name} must be a table: write [{name}]{line}, not {content!r:.80}")
        return {key: value for key, value in content.items() if value is not None}

    def _add(self, declaration: type[Table], key: str, value: object, place: str, name: str = "") -> None:
        declared = declaration.find(key)
        called = declaration.name_of(key)
        values = self._values.setdefault(declaration.table_name, {})
        read = read_value(declared, value, name or called)
        if declared.adds and place == COMMAND_LINE and isinstance(read, frozenset):
            usual = declared.default.get(key, read) if isinstance(declared.default, Mapping) else declared.default
            read |= values.get(key, usual)  # type: ignore[operator]  # both were parsed by the same function
        values[key] = read
        self.places[called] = place

    def _find_variable(self, variable: str) -> tuple[str, str]:
        """The table and the key that a variable sets."""
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        # The name of one table may be a prefix of another.
        for table in sorted(self._tables, key=len, reverse=True):
            if name != name.upper() or not f"{name}_".startswith(f"{table}_".upper()):
                continue
            declaration, key = self._tables[table], name[len(table) + 1 :].lower()
            if declaration.is_array or declaration.is_map:
                written = f"[[{table}]]" if declaration.is_array else f"[{table}]"
                raise SettingsError(f"{variable} cannot be set there; write {written} in {FILE_NAME}")
            if key in declaration.moved:
                raise SettingsError(f"{variable} is no longer a setting; {declaration.moved[key]}")
            if key in declaration.declared and not declaration.declared[key].by_variable:
                raise SettingsError(f"{variable} cannot be set there; write {table}.{key} in {FILE_NAME}")
            if key in declaration.declared:
                return table, key
        known = {each.variable: each.name for each in self._all()}
        near = _nearest(name.upper(), known)
        cure = (
            f"did you mean {ENVIRONMENT_PREFIX}{near}?"
            if near
            else "remove it, or install the package that declares it"
        )
        raise SettingsError(f"{variable} is not a setting of Toolcrib or of an installed package; {cure}")

    def _hint(self, name: str) -> str:
        """A suggestion for an unknown table, or for a key outside of all tables."""
        names = [each.name for each in self._all()]
        same = [each for each in names if name in (each.partition(".")[2], each.replace(".", "_"))]
        if same:
            return f"; did you mean {' or '.join(same)}?"
        if near := _nearest(name, self._tables):
            return f"; did you mean [{near}]?"
        if near := _nearest(name, names):
            return f"; did you mean {near}?"
        known = ", ".join(sorted(self._tables))
        return f"; remove it, or install the package that declares it; known are {known}"

    def _all(self) -> Iterator[Setting]:
        for name in self._tables:
            yield from self._tables[name].declared.values()


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), n=1)), "")
