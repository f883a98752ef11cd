"""Everything an operator can set: `toolcrib.toml`, the environment, the command line; later ones win.

Read once by the outermost code; everyone else is handed values.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.settings.readers import LISTS, MAX_NUMBER, NUMBERS, READERS, CustomRule, read_rules, read_switch
from toolcrib.lib.documents import read_toml
from toolcrib.model.errors import SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILE_NAME = "toolcrib.toml"
ENVIRONMENT_PREFIX = "TOOLCRIB_"
ENVIRONMENT = "the environment"
COMMAND_LINE = "the command line"
HOST_PROGRAM = "the host program"
BY_DEFAULT = "the default"
# What a settings file can open, as opposed to merely choosing or closing.
OPENING = frozenset(
    (
        *("workspace", "workspace_open", "modules", "rule_modules", "grants", "variables", "rules_off"),
        *("sandbox_require", "egress_private", "depot_keys", "allowed_hosts"),
        *("secrets_environment", "secrets_file", "secrets_keyring", "http_hosts", "http_origins"),
        *("queue_url", "queue_secret", "request_missing", "builder_maker", "builder_command", "builder_hosts"),
        *("builder_variables", "builder_url", "builder_key", "builder_capabilities", "builder_unproved"),
    )
)
MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings in force.

    root: the project folder; none, and nothing is kept on disk
    workspace: the folder that file tools and shell commands work in, from the project folder
    workspace_open: protected names of the workspace that tools may use all the same, such as `.env.test` or `.vscode/tasks.json`
    tools: folders whose files are tools, from the project folder; of equal names the earlier folder is meant
    scripts: trees of script files with metadata, from the project folder; of equal names the earlier tree is meant
    variables: variables of the host that tools may see, each as `tool:NAME`, or `*:NAME` for every tool
    modules: Python modules of the host program that hold tools; one that fails to load is reported
    rule_modules: Python modules that hold rules; one that fails to load keeps the crib from starting
    grants: capabilities that tools may use, each by name, as everything below a dot (`net.*`), or all of them (`*`)
    disabled: tools that are switched off, by name, `bundle/name`, either with `@version`, or `bundle/*`
    builtins: whether the tools for files, shell and web that come with Toolcrib are there
    rules: rules of the operator's own; each has a name and forbidden_patterns
    rules_off: names of default rules to leave out: dangerous_commands, sensitive_files
    timeout_ms: how long a call may take whose tool says nothing about it
    shell_timeout_ms: how long a shell command may take
    result_bytes: how large a value may be before it is kept aside to be read in pieces
    confirmation_seconds: how long a confirmation can be used
    approvals_seconds: how long a call may wait for a person's approval, and how long the approval then holds
    approvals_pending: how many calls may wait for approval at once; those of one caller may be a tenth of them
    max_steps: how many calls a session may make
    sandbox_require: what the sandbox must guarantee for files of tools to run at all
    sandbox_jobs: how many processes of tools may run at once
    sandbox_queue: how many more calls may wait for one of those places before they are refused
    sandbox_memory_mb: how much memory the processes of one call may use
    sandbox_processes: how many processes one call may have
    sandbox_disk_mb: how much one call may keep in its scratch folder, and how large a file it may write
    egress_private: private addresses that may be reached, each as `host:port`
    depot_keys: public keys (`ed25519:…`) whose signatures of published tools are trusted
    depot_signed: whether only tools with a trusted signature are pulled
    watch: whether a new build of tool folders counts at once; else it counts from the next start
    handler_workers: how many processes of tool folders' handlers may be kept ready, over all tools
    handler_fresh: whether each call of a handler gets a process of its own
    allowed_hosts: hosts that HTTP tools of bundles may reach: `api.example.com`, `*.example.com`, either with a port
    application_version: what `${version}` means in HTTP tools; without one, the version of Toolcrib
    models: the models that are there, for tools that name one; unset, every model is
    max_tools: how many tools the bundles may hold together
    max_retries: how often an HTTP tool may repeat a request, whatever it says itself
    max_sent_bytes: how large a request of an HTTP tool may be
    max_response_bytes: how large an answer an HTTP tool reads
    secrets_environment: variables of the host that are secrets of HTTP tools
    secrets_file: a file of further secrets, one NAME=value in each line, readable by its owner alone
    secrets_keyring: the name under which the keyring of the system holds further secrets
    search_index: whether the search index is kept on disk; if not, each process makes its own in memory
    http_host: the address that the server listens on
    http_port: the port that the server listens on
    http_hosts: further names by which the server may be called, beside that of its address
    http_origins: web pages that may call the server, each as `https://host`
    http_calls_per_minute: how many requests one caller may make in a minute
    http_concurrency: how many calls of tools the server performs at once
    http_queue: how many more may wait for their turn before they are refused
    http_connections: how many connections may be open, and `http_address_connections` from one address
    http_address_connections: how many connections one address may have open
    http_header_seconds: how long a request may take until its headers are there
    http_body_seconds: how long it may take after that until its body is there
    http_total_seconds: how long a request may take altogether
    http_body_bytes: how large the body of a request may be
    http_drain_seconds: how long calls may go on when the server is told to end
    queue_url: the Redis server that keeps requests for tools, as `redis://host:6379/0`; without one a file of the project does
    queue_secret: the name of the secret that is the password of that server
    queue_requests: the channel on which requests are published there
    queue_ready: the channel on which finished tools are announced there
    queue_hash: what the keys of requests begin with there
    queue_original: whether the names that the original Builder used are heard and spoken there too
    request_missing: whether an empty search or a call of an unknown tool files a request for it
    request_strict: whether a request that is only readable with warnings is refused
    builder_maker: who writes the code of requested tools: person, command, openai, or the maker of a plug-in
    builder_command: the program that the maker `command` starts, with its words
    builder_hosts: hosts that this program may reach
    builder_variables: variables of the host, or secrets, that this program sees
    builder_url: the OpenAI-compatible endpoint of the maker `openai`, as `https://host/v1`
    builder_model: the model that it asks for
    builder_key: the name of the secret that is its key
    builder_seconds: how long building one tool may take, with all its attempts
    builder_attempts: how often a maker may try
    builder_call_seconds: how long one call of a tool may take while it is proved
    builder_disk_mb: how much a maker may write
    builder_lease_seconds: how long a Builder that fell silent keeps others from building its request
    builder_capabilities: capabilities that a request may ask for, written as grants are
    builder_unproved: whether a tool that needs a network may go live although no recorded answers prove it
    places: where each setting that is not a default was set
    """

    root: Path | None = None
    workspace: Path = Path()
    workspace_open: tuple[str, ...] = ()
    tools: tuple[str, ...] = ("tools",)
    scripts: tuple[str, ...] = (".ai/tools", "~/.ai/tools")
    variables: frozenset[str] = frozenset()
    modules: tuple[str, ...] = ()
    rule_modules: tuple[str, ...] = ()
    grants: frozenset[str] = frozenset({"fs.*"})
    disabled: frozenset[str] = frozenset()
    builtins: bool = True
    rules: tuple[CustomRule, ...] = ()
    rules_off: frozenset[str] = frozenset()
    timeout_ms: int = 30_000
    shell_timeout_ms: int = 30_000
    result_bytes: int = 256_000
    confirmation_seconds: int = 300
    approvals_seconds: int = 3_600
    approvals_pending: int = 1_000
    max_steps: int = 20
    sandbox_require: tuple[str, ...] = ("env", "time", "reap", "fs", "net", "priv")
    sandbox_jobs: int = 8
    sandbox_queue: int = 1_000
    sandbox_memory_mb: int = 1_024
    sandbox_processes: int = 64
    sandbox_disk_mb: int = 256
    egress_private: tuple[str, ...] = ()
    depot_keys: tuple[str, ...] = ()
    depot_signed: bool = False
    watch: bool = False
    handler_workers: int = 8
    handler_fresh: bool = False
    allowed_hosts: tuple[str, ...] = ()
    application_version: str = ""
    models: tuple[str, ...] = ()
    max_tools: int = 100_000
    max_retries: int = 4
    max_sent_bytes: int = 1_000_000
    max_response_bytes: int = 5_000_000
    secrets_environment: tuple[str, ...] = ()
    secrets_file: Path | None = None
    secrets_keyring: str = ""
    search_index: bool = True
    http_host: str = "127.0.0.1"
    http_port: int = 8765
    http_hosts: tuple[str, ...] = ()
    http_origins: tuple[str, ...] = ()
    http_calls_per_minute: int = 60_000
    http_concurrency: int = 256
    http_queue: int = 4_096
    http_connections: int = 12_000
    http_address_connections: int = 12_000
    http_header_seconds: int = 10
    http_body_seconds: int = 10
    http_total_seconds: int = 600
    http_body_bytes: int = 1_000_000
    http_drain_seconds: int = 20
    queue_url: str = ""
    queue_secret: str = ""
    queue_requests: str = "fullsend:builder_requests"
    queue_ready: str = "builder:tool_ready"
    queue_hash: str = "tool_requests"
    queue_original: bool = False
    request_missing: bool = False
    request_strict: bool = False
    builder_maker: str = "person"
    builder_command: tuple[str, ...] = ()
    builder_hosts: tuple[str, ...] = ()
    builder_variables: tuple[str, ...] = ()
    builder_url: str = ""
    builder_model: str = ""
    builder_key: str = ""
    builder_seconds: int = 900
    builder_attempts: int = 3
    builder_call_seconds: int = 10
    builder_disk_mb: int = 256
    builder_lease_seconds: int = 30
    builder_capabilities: frozenset[str] = frozenset()
    builder_unproved: bool = False
    places: Mapping[str, str] = field(default_factory=dict)

    def where(self, name: str) -> str:
        """Where a setting was set, in words."""
        return f"{name} in {self.places[name]}" if name in self.places else f"{BY_DEFAULT} of {name}"


def load_settings(
    root: Path | None, environment: Mapping[str, str], given_by: str = HOST_PROGRAM, /, **given: object
) -> Settings:
    """Read the settings of a project folder (None: no project), then the environment, then what was given.

    Later ones replace earlier ones, except that a grant on the command line is added to what is granted already.
    """
    settings = Settings(root=root, workspace=root or Path())
    if root is not None:
        settings = _merge(settings, _read_file(root / FILE_NAME), FILE_NAME)
    settings = _merge(settings, _read_environment(environment), ENVIRONMENT)
    settings = _merge(settings, {name: value for name, value in given.items() if value is not None}, given_by)
    workspace = settings.workspace if root is None else root / settings.workspace
    if not workspace.is_dir():
        raise SettingsError(f"workspace {str(workspace)!r} is not a folder; {settings.where('workspace')}")
    return replace(settings, workspace=workspace.resolve())


def find_project(
    here: Path, cure: Callable[[Path, Path], str], owner_of: Callable[[Path], int] = lambda path: path.stat().st_uid
) -> Path:
    """The nearest folder, from here upwards, that holds settings; else here.

    Settings may load code, so those of a folder further up count only if they are the caller's, root's or belong to the
    owner of this folder: anyone may put a file into a shared folder such as /tmp. Where settings are not to be trusted
    without being asked, this raises SettingsError; `cure` words how to choose the folder that was found, or the other one.
    """
    for folder in (here, *here.parents):
        file = folder / FILE_NAME
        if not file.is_file():
            continue
        _refuse_inside_another(folder, cure)
        if folder != here and owner_of(file) not in {os.getuid(), 0, owner_of(here)}:
            raise SettingsError(f"{file} belongs to another user; {cure(folder, here)}")
        return folder
    return here


def _refuse_inside_another(folder: Path, cure: Callable[[Path, Path], str]) -> None:
    """Settings within another project may have been written by the tools of that one, to be obeyed here."""
    outer = next((place for place in folder.parents if (place / FILE_NAME).is_file()), None)
    if outer is None:
        return
    file = folder / FILE_NAME
    # Which of its settings could open something that is closed by default, or have code run.
    if opens := sorted(OPENING & _read_file(file).keys()):
        message = f"{file} sets {opens[0]} inside the project {outer}, whose tools may have written it"
        raise SettingsError(f"{message}; {cure(folder, outer)}")


def _read_file(file: Path) -> dict[str, object]:
    """The settings of the file under their flat names; none if there is no file."""
    try:
        text = _read_text(file)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise SettingsError(f"{file}: {problem.strerror}; make it readable or remove it") from problem
    except UnicodeDecodeError as problem:
        raise SettingsError(f"{file}: not UTF-8 at byte {problem.start}; save it as UTF-8") from problem
    try:
        document = read_toml(text, str(file))
    except ToolError as problem:
        raise SettingsError(problem.message) from problem
    return _flatten(document, file)


def _read_text(file: Path) -> str:
    if not file.is_symlink() and not file.exists():
        raise FileNotFoundError
    # Whatever stands there was meant to be obeyed: passing over it would leave open what it closes.
    if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
        raise SettingsError(f"{file} is not a file of at most {MAX_FILE_BYTES} bytes; mend it or remove it")
    return file.read_bytes().decode("utf-8-sig")


def _flatten(document: Mapping[str, object], file: Path) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in document.items():
        if not isinstance(value, dict) or key in READERS:
            named = {key: value}
        elif key in _SECTIONS:
            named = {f"{key}_{name}": part for name, part in value.items()}
        else:
            named = {f"{key}.{name}": part for name, part in value.items()} or {key: value}
        if twice := sorted(named.keys() & flat.keys()):
            raise SettingsError(f"{file}: {twice[0]} is set twice, by itself and in its table; remove one of them")
        flat |= named
    return flat


def _read_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """The variables with our prefix; one that means nothing is a slip, and may have been meant to close something."""
    found: dict[str, object] = {}
    for variable in sorted(name for name in environment if name.startswith(ENVIRONMENT_PREFIX)):
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        reader = READERS.get(name)
        if reader is read_rules:
            raise SettingsError(f"{ENVIRONMENT}: {variable} cannot be set there; write [[rules]] in {FILE_NAME}")
        if reader is None or variable != variable.upper():
            near = _near(name)
            hint = f"; did you mean {ENVIRONMENT_PREFIX}{near[0].upper()}?" if near else "; remove it"
            raise SettingsError(f"{ENVIRONMENT}: {variable} is no setting{hint}")
        found[name] = _from_text(environment[variable].strip(), reader)
    return found


def _from_text(text: str, reader: Callable[[str, object], object]) -> object:
    if reader in LISTS:
        return [word.strip() for word in text.split(",") if word.strip()]
    if reader in NUMBERS and text.isdecimal() and len(text) <= len(str(MAX_NUMBER)):
        return int(text)
    if reader is read_switch and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    return text


def _merge(settings: Settings, found: Mapping[str, object], place: str) -> Settings:
    changes: dict[str, object] = {}
    for name, value in found.items():
        reader = READERS.get(name)
        if reader is None:
            near = _near(name)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(READERS))}"
            raise SettingsError(f"{place}: unknown setting {name!r}{hint}")
        try:
            changes[name] = reader(name, value)
        except ValueError as problem:
            raise SettingsError(f"{place}: {problem}") from problem
    if "grants" in changes and place == COMMAND_LINE:
        changes["grants"] = settings.grants | _as_set(changes["grants"])
    places = {**settings.places, **dict.fromkeys(changes, place)}
    return replace(settings, places=places, **changes)  # type: ignore[arg-type]  # each value was made by the reader of its field


def _as_set(value: object) -> frozenset[str]:
    return value if isinstance(value, frozenset) else frozenset()


# A table of the file and the prefix of its settings here: [sandbox] require = [...] is sandbox_require.
_SECTIONS = frozenset(
    {
        "approvals",
        "sandbox",
        "egress",
        "shell",
        "confirmation",
        "depot",
        "handler",
        "secrets",
        "search",
        "http",
        "queue",
        "request",
        "builder",
    }
)


def _near(name: str) -> list[str]:
    import difflib

    return difflib.get_close_matches(name, READERS, n=1)
