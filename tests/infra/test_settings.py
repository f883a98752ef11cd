"""Settings from file, environment and arguments: the later one wins, and nothing that was written is passed over."""

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from toolcrib import Crib, SettingsError
from toolcrib.core.call_state import CallsSettings
from toolcrib.core.grants import GrantsSettings
from toolcrib.core.plugins import Plugins
from toolcrib.features.safety_rules.settings import CustomRule, RulesSettings
from toolcrib.infra.sandbox import SandboxSettings
from toolcrib.infra.settings import (
    COMMAND_LINE,
    HOST_PROGRAM,
    Settings,
    Table,
    find_project,
    load_settings,
    read_positive,
    read_text,
    setting,
)

TABLES = Plugins().tables()

# Some values of each kind as they are written in the file, in the environment and as an argument, and what becomes of them.
WORDS = ('["a", "b", "a"]', "a, b,", ["a", "b"], ("a", "b"))
WORD_SET = ('["a", "b"]', "a,b,", {"a", "b"}, frozenset({"a", "b"}))
NUMBER = ("5", " 5 ", 5, 5)
TEXT = ('"a"', " a ", "a", "a")
NAMES = ('["KEY"]', "KEY", ["KEY"], ("KEY",))
ADDRESS = ('"https://a.example/x"', "https://a.example/x", "https://a.example/x", "https://a.example/x")
MODE = ('"voice"', " voice ", "voice", "voice")
# What takes only some words.
WRITTEN = {
    "project.data_dir": ('"../data"', "../data", "../data", Path("../data")),
    "workspace.folder": ('"work"', "work", "work", Path("work")),
    "workspace.open": ('[".env.test"]', ".env.test", [".env.test"], (".env.test",)),
    "access.variables": ('["deploy:HOME"]', "deploy:HOME", ["deploy:HOME"], frozenset({"deploy:HOME"})),
    "safety_rules.off": ('["sensitive_files"]', "sensitive_files", ["sensitive_files"], frozenset({"sensitive_files"})),
    "sandbox.require": ('["env", "net"]', "env,net", ["env", "net"], ("env", "net")),
    "builder.command": ('["a", "b", "b"]', "a,b,b", ["a", "b", "b"], ("a", "b", "b")),
    "builder.variables": NAMES,
    "secrets.environment": NAMES,
    "notify.webhook": ADDRESS,
    "notify.page": ADDRESS,
    "server.mode": MODE,
    "mcp.mode": MODE,
    "ecosystems.valves": ("{ bill = { tip = 3 } }", "", {"bill": {"tip": 3}}, {"bill": {"tip": 3}}),
    "secrets.file": ('"s.env"', "s.env", "s.env", Path("s.env")),
}
DECLARED = {each.name: each for table in TABLES.values() for each in table.declared.values()}
# A number whose default is 0 has no bound there.
NUMBERS = [name for name, each in DECLARED.items() if type(each.default) is int and each.default]


def written(name: str) -> tuple[str, str, object, object]:
    """A setting as it is written in the file, in the environment and as an argument, and what becomes of it."""
    default = DECLARED[name].default
    if name in WRITTEN:
        return WRITTEN[name]
    if isinstance(default, bool):
        return (str(not default).lower(), str(not default), not default, not default)
    kinds = {int: NUMBER, str: TEXT, tuple: WORDS, frozenset: WORD_SET}
    return kinds[type(default)]


def value_of(settings: Settings, name: str) -> object:
    table, _, key = name.partition(".")
    found = settings[table]
    return found.values if found.is_map else found.values[key or table]


def load(root: Path | None, environment=None, given_by=HOST_PROGRAM, /, **given) -> Settings:
    return load_settings(root, environment or {}, TABLES, given, given_by)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path


def write(root: Path, text: str | bytes) -> Path:
    file = root / "toolcrib.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refusal(root: Path | None, environment=None, given_by=HOST_PROGRAM, /, **given) -> str:
    with pytest.raises(SettingsError) as caught:
        load(root, environment, given_by, **given)
    return caught.value.message


def test_every_setting_has_a_line_of_help_and_a_default_that_its_reader_takes_for_itself():
    for name, each in DECLARED.items():
        assert each.summary.strip(), name
        if TABLES[each.table].is_map:
            assert all(each.read('grants."*"', value) == value for value in each.default.values()), name
        # Nothing at all stands for a text, a path or a list that is not there.
        elif each.default not in ("", None, ()):
            assert each.read(name, each.default) == each.default, name


@pytest.mark.parametrize("source", ["file", "environment", "mapping", "table"])
def test_every_setting_can_be_set_everywhere_and_says_where_it_was(root, source):
    for name, declared in DECLARED.items():
        if name not in ("rules", "grants") and (declared.by_variable or source != "environment"):
            check_setting(root, name, source)


def test_a_map_is_set_in_the_file_and_by_no_variable(root):
    message = refusal(root, {"TOOLCRIB_ECOSYSTEMS_VALVES": "bill"})
    assert message.endswith("TOOLCRIB_ECOSYSTEMS_VALVES cannot be set there; write ecosystems.valves in toolcrib.toml")
    for variable in ("TOOLCRIB_GRANTS", "TOOLCRIB_GRANTS_SHELL"):
        told = f"the environment: {variable} cannot be set there; write [grants] in toolcrib.toml"
        assert refusal(root, {variable: "shell.execute"}) == told


def test_a_former_name_is_told_the_present_one(root):
    message = refusal(root, {"TOOLCRIB_ACCESS_GRANTS": "shell.execute"})
    assert message.startswith(
        "the environment: TOOLCRIB_ACCESS_GRANTS is no longer a setting; write [grants] and below"
    )
    write(root, "[access]\ngrants = ['shell.execute']")
    assert refusal(root).startswith("toolcrib.toml: access.grants is no longer a setting; write [grants] and below it")


def check_setting(root, name, source):
    text, variable, argument, expected = written(name)
    table, key = name.split(".")
    environment, given = {"HOME": "/", "PATH": ""}, {}
    if source == "file":
        write(root, f"[{table}]\n{key} = {text}")
        place = "toolcrib.toml"
    elif source == "environment":
        environment[f"TOOLCRIB_{table}_{key}".upper()] = variable
        place = "the environment"
    else:
        given = {table: {key: argument} if source == "mapping" else TABLES[table](**{key: argument})}
        place = "the host program"
    settings = load(root, environment, **given)
    assert value_of(settings, name) == expected
    assert type(value_of(settings, name)) is type(expected)
    assert settings.where(name) == f"{name} in {place}"
    assert settings.places == {name: place}
    others = [other for other in DECLARED if other != name]
    assert {other: value_of(settings, other) for other in others} == {
        other: DECLARED[other].default for other in others
    }


def test_the_workspace_is_found_from_the_project_and_is_the_project_itself_by_default(root):
    assert load(root).workspace == root.resolve()
    assert load(root, workspace={"folder": "work"}).workspace == (root / "work").resolve()
    assert load(None).workspace == Path.cwd()


def test_our_own_data_may_lie_elsewhere_but_never_where_tools_work(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("data") / "ours"
    assert load(None).data is None
    assert load(root).data == root / ".toolcrib"
    assert load(root, project={"data_dir": ".toolcrib"}).data == root / ".toolcrib"
    assert load(root, project={"data_dir": elsewhere}).data == elsewhere
    assert load(root, project={"data_dir": "ours"}, workspace={"folder": "work"}).data == root / "ours"
    where = "project.data_dir in the host program"
    (root / "link").symlink_to("work")
    for inside in ("ours", "link/ours", "work/../deep/ours"):
        told = refusal(root, project={"data_dir": inside})
        assert told.endswith(f"where tools work; name a folder outside of it: {where}"), inside
    for around in (".", "..", "/"):
        assert refusal(root, project={"data_dir": around}).endswith(f"name a folder of its own: {where}"), around
    told = refusal(root, project={"data_dir": "work"}, workspace={"folder": "work"})
    assert told == f"{root}/work holds the workspace; name a folder of its own: {where}"


def test_a_crib_keeps_its_data_where_it_is_told_to(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("data") / "deep" / "ours"
    (root / "tools").mkdir()
    with Crib(root, environment={"TOOLCRIB_PROJECT_DATA_DIR": str(elsewhere)}) as crib:
        assert crib.call_sync("write_file", path="note.txt", content="x").ok
        crib.secrets.set("KEY", "hidden")
    assert {"journal", "secrets.json"} <= {path.name for path in elsewhere.iterdir()}
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in root.iterdir()) == ["note.txt", "tools", "work"]


def test_what_tools_are_given_is_no_setting(root):
    """A tool that runs `crib` hands these variables on."""
    given = {"TOOLCRIB_WORKSPACE": "/somewhere", "TOOLCRIB_CHANNEL": "7"}
    settings = load(root, {**given, "TOOLCRIB_WORKSPACE_FOLDER": "work"})
    assert settings.places == {"workspace.folder": "the environment"}


def test_a_table_has_its_defaults_is_checked_when_it_is_made_and_does_not_change():
    sandbox = SandboxSettings(jobs=2)
    assert (sandbox.jobs, sandbox.queue, sandbox) == (2, 1_000, SandboxSettings(jobs=2))
    assert repr(sandbox) == "SandboxSettings(jobs=2)"
    with pytest.raises(SettingsError, match=r"^sandbox\.jobs must be a whole number"):
        SandboxSettings(jobs=0)
    with pytest.raises(SettingsError, match=r"^unknown setting sandbox\.job; did you mean sandbox\.jobs\?$"):
        SandboxSettings(job=1)
    with pytest.raises(AttributeError, match="settings are frozen"):
        sandbox.jobs = 3


def test_a_typed_table_replaces_only_what_it_says_itself(root):
    write(root, "[sandbox]\njobs = 3\nqueue = 5")
    sandbox = load(root, sandbox=SandboxSettings(jobs=2)).table(SandboxSettings)
    assert (sandbox.jobs, sandbox.queue) == (2, 5)
    assert "sandbox must be a table" in refusal(root, sandbox=CallsSettings(max_steps=1))


def test_only_the_tables_that_were_set_are_loaded(tmp_path):
    write(tmp_path, "[queue]\nurl = 'redis://h'")
    code = (
        "import sys; from pathlib import Path; from toolcrib.core.plugins import Plugins\n"
        "from toolcrib.infra.settings import load_settings\n"
        f"load_settings(Path({str(tmp_path)!r}), {{'TOOLCRIB_SANDBOX_JOBS': '2'}}, Plugins().tables())\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('toolcrib.features.', 'toolcrib.infra.'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    expected = [
        "features.project",
        "features.requests",
        "features.requests.settings",
        "infra.sandbox",
        "infra.settings",
    ]
    assert done.stdout.split() == [f"toolcrib.{name}" for name in expected]


def test_the_argument_wins_over_the_environment_and_that_over_the_file(root):
    write(root, "[calls]\ntimeout_ms = 1\nmax_steps = 1\nresult_bytes = 1")
    environment = {"TOOLCRIB_CALLS_TIMEOUT_MS": "2", "TOOLCRIB_CALLS_MAX_STEPS": "2"}
    settings = load(root, environment, calls={"timeout_ms": 3, "max_steps": None}, sandbox=None)
    calls = settings.table(CallsSettings)
    assert (calls.timeout_ms, calls.max_steps, calls.result_bytes) == (3, 2, 1)
    assert settings.where("calls.timeout_ms") == "calls.timeout_ms in the host program"
    assert settings.where("builtins.shell_timeout_ms") == "the default of builtins.shell_timeout_ms"


def test_grants_replace_earlier_ones_and_may_close_everything_but_those_of_the_command_line_are_added(root):
    write(root, 'grants."*" = ["net.http"]')

    def lines(given, given_by=HOST_PROGRAM):
        return load(root, {}, given_by, grants=given).table(GrantsSettings).lines

    assert lines({"*": ["c.d"]}) == {"*": {"c.d"}}
    assert lines({"*": []}) == {"*": frozenset()}
    assert lines({"mail": ["c.d"]}) == {"*": {"net.http"}, "mail": {"c.d"}}
    assert lines({"*": ["c.d"], "mail": ["e.f"]}, COMMAND_LINE) == {"*": {"net.http", "c.d"}, "mail": {"e.f"}}
    assert lines(GrantsSettings(lines={"mail": ["c.d"]})) == {"*": {"net.http"}, "mail": {"c.d"}}
    assert load(None, {}, COMMAND_LINE, grants={"*": ["c.d"]}).table(GrantsSettings).lines == {"*": {"fs.*", "c.d"}}
    settings = load(root, {}, COMMAND_LINE, grants={"*": ["c.d"]})
    assert settings.where('grants."*"') == 'grants."*" in the command line'
    assert settings.where('grants."mail"') == 'the default of grants."mail"'


@pytest.mark.spec("S4-34")
@pytest.mark.parametrize("value", [0, -1, 2**31, 10**30, True, 1.5, "5"])
def test_a_number_must_be_greater_than_nothing(root, value):
    for name in NUMBERS:
        check_number(root, name, value)


def check_number(root, name, value):
    table, key = name.split(".")
    assert f"the host program: {name} must be a whole number greater than 0" in refusal(root, **{table: {key: value}})
    if not isinstance(value, str):
        write(root, f"{name} = {str(value).lower()}")
        told = "must be a whole number greater than 0" if abs(value) < 2**64 else "an integer beyond 64 bit"
        assert f"toolcrib.toml: {name}" in refusal(root)
        assert told in refusal(root)
        write(root, "")
    if not isinstance(value, str):
        variable = f"TOOLCRIB_{table}_{key}".upper()
        told = f"the environment: {variable} must be a whole number greater than 0"
        assert told in refusal(root, {variable: str(value)})


@pytest.mark.spec("S4-34")
@pytest.mark.parametrize("text", ["[builtins]\nshell_timeout_ms = 0", "builtins.shell_timeout_ms = -5"])
def test_a_crib_does_not_start_with_a_time_limit_for_the_shell_that_is_none(root, text):
    write(root, text)
    told = r"toolcrib\.toml: builtins\.shell_timeout_ms must be a whole number greater than 0"
    with pytest.raises(SettingsError, match=told):
        Crib(root)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('calls.timeout_ms = "5"', "calls.timeout_ms must be a whole number"),
        ("builtins.enabled = 1", "builtins.enabled must be true or false, not 1"),
        ('builtins.enabled = "false"', "builtins.enabled must be true or false, not 'false'"),
        ('grants."*" = "net.http"', 'grants."*" must be a list of texts, such as grants."*" = ["…"]'),
        ('grants."*" = [1]', 'grants."*" must hold texts only'),
        ('grants."*" = [""]', 'grants."*" must hold texts only'),
        (
            'grants = ["net.http"]',
            'grants must be a table: write [grants] and below it "NAME" = ["shell.execute"], not',
        ),
        ("grants.mail.send = true", 'grants."mail" must be a list of texts'),
        (
            "grants.mail = ['fs']",
            "grants.\"mail\": 'fs' is not a capability; write fs.* for all of them, or fs.read or fs.write",
        ),
        (
            "grants.mail = ['shell.']",
            "grants.\"mail\": 'shell.' is not a capability; write shell.* for all of them, or shell.execute",
        ),
        ("grants.mail = ['fs.r*']", "grants.\"mail\": 'fs.r*' is not a capability; did you mean fs.read"),
        (
            "grants.mail = ['**']",
            "grants.\"mail\": '**' is not a capability; write dotted names such as fs.read, or net.*",
        ),
        (
            "grants.mail = []",
            'grants."mail" = [] takes nothing away; remove it, and narrow "*", which counts for every',
        ),
        ("grants.'' = ['a.b']", 'grants."": no tool is called so: '),
        ("grants.'a b' = ['a.b']", 'grants."a b": no tool is called so: '),
        (
            "grants.'mail-*' = ['a.b']",
            'grants."mail-*": a name is not matched by parts of it; write a name, bundle/name',
        ),
        ("grants.'*/mail' = ['a.b']", 'grants."*/mail": no tool is called so; write a name, bundle/name'),
        ("grants.'/mail' = ['a.b']", 'grants."/mail": no tool is called so; write a name, bundle/name'),
        ("grants.'mail@' = ['a.b']", 'grants."mail@": no tool is called so; write a name, bundle/name'),
        ("grants.'mail@1.*' = ['a.b']", 'grants."mail@1.*": a name is not matched by parts of it'),
        ("grants.'fs.read' = ['a.b']", 'grants."fs.read": this is a capability; the name of the tool comes first'),
        ("access.grants = ['a.b']", 'access.grants is no longer a setting; write [grants] and below it "*" = ["fs.*"]'),
        ('catalog.folders = ["a\\u0000b"]', "catalog.folders must hold texts only"),
        ("workspace.folder = 5", "workspace.folder must be a path, not 5"),
        ('workspace.folder = ""', "workspace.folder must be a path, not ''"),
        ('workspace = "work"', "workspace must be a table: write [workspace], not 'work'"),
        ("[[sandbox]]\njobs = 2", "sandbox must be a table: write [sandbox], not [{'jobs': 2}]"),
        ('[sandbox]\nrequire = ["fsx"]', "sandbox.require: unknown guarantee 'fsx'; known are fs, net"),
        ('safety_rules.off = ["everything"]', "safety_rules.off: no default rule is called 'everything'"),
        ('rules = "x"', "rules must be tables: write [[rules]]"),
        ("[rules]\nname = 'x'", "rules must be tables: write [[rules]]"),
        ("[[rules]]\nforbidden_patterns = ['x']", "each of [[rules]] needs a name"),
        ("[[rules]]\nname = 'x'", "rule x forbids nothing"),
        ("[[rules]]\nname = 'x'\nforbidden_patterns = []", "rule x forbids nothing"),
        ("[[rules]]\nname = 'x'\nforbidden_patterns = 'y'", "forbidden_patterns of rule x must be a list of texts"),
        ("[[rules]]\nname = 'x'\nforbidden_patterns = ['y']\ninclude_text = 1", "include_text of rule x must be true"),
        ("[[rules]]\nname = 'x'\npatterns = ['y']", "rule x: unknown key 'patterns'; known are forbidden_patterns"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_by_file_table_and_key(root, text, told):
    write(root, text)
    assert refusal(root).startswith(f"toolcrib.toml: {told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("timeout_ms = 5", "timeout_ms stands in no table; did you mean calls.timeout_ms?"),
        ("sandbox_jobs = 5", "sandbox_jobs stands in no table; did you mean sandbox.jobs?"),
        ("url = 'x'", "url stands in no table; did you mean builder.url or queue.url?"),
        ("[sandbx]\nrequire = []", "unknown table [sandbx]; did you mean [sandbox]?"),
        ("[sandbox]\nrequired = []", "unknown setting sandbox.required; did you mean sandbox.require?"),
        ("[search]\nzzz = 5", "unknown setting search.zzz; known are search.index"),
        ("[egres]", "unknown table [egres]; did you mean [egress]?"),
        ("root = '/'", "root stands in no table"),
        (
            "[zzzzzzzz]",
            "unknown table [zzzzzzzz]; remove it, or install the package that declares it; known are access, ",
        ),
    ],
)
def test_an_unknown_table_or_key_is_refused_with_the_nearest_one(root, text, told):
    write(root, text)
    assert refusal(root).startswith(f"toolcrib.toml: {told}")


@pytest.mark.parametrize("name", ["timeout", "grant", "root", "places"])
def test_an_unknown_argument_is_refused(root, name):
    assert refusal(root, **{name: "x"}).startswith(f"the host program: {name} stands in no table")


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("TOOLCRIB_ACCESS_VARIABLE", "did you mean TOOLCRIB_ACCESS_VARIABLES?"),
        ("TOOLCRIB_CATALOG_DISABLE", "did you mean TOOLCRIB_CATALOG_DISABLED?"),
        ("TOOLCRIB_calls_timeout_ms", "did you mean TOOLCRIB_CALLS_TIMEOUT_MS?"),
        ("TOOLCRIB_", "remove it, or install the package that declares it"),
        ("TOOLCRIB_ZZZZ", "remove it, or install the package that declares it"),
    ],
)
def test_a_variable_that_sets_nothing_is_refused_because_it_may_have_been_meant_to_close_something(variable, hint):
    told = f"the environment: {variable} is not a setting of Toolcrib or of an installed package; {hint}"
    assert refusal(None, {variable: "shell"}) == told


def test_rules_cannot_be_squeezed_into_a_variable():
    assert "TOOLCRIB_RULES cannot be set there; write [[rules]] in toolcrib.toml" in refusal(
        None, {"TOOLCRIB_RULES": "x"}
    )


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("CALLS_TIMEOUT_MS", "soon", "must be a whole number"),
        ("CALLS_TIMEOUT_MS", "", "must be a whole number"),
        ("CALLS_TIMEOUT_MS", "9" * 5000, "must be a whole number"),
        ("BUILTINS_ENABLED", "no", "must be true or false, not 'no'"),
        ("SANDBOX_REQUIRE", "everything", "unknown guarantee 'everything'"),
        ("WORKSPACE_FOLDER", "", "must be a path"),
    ],
)
def test_a_variable_with_a_wrong_value_is_refused(variable, value, told):
    message = refusal(None, {f"TOOLCRIB_{variable}": value})
    assert message.startswith(f"the environment: TOOLCRIB_{variable}")
    assert told in message


class WeatherSettings(Table, name="weather"):
    """A table of a package that is not ours."""

    units: str = setting(default="metric", read=read_text, opens=False, summary="the units of all answers")
    key: str = setting(default="", read=read_text, summary="the secret that is the key")
    most: int = setting(default=3, read=read_positive, opens=False, summary="how many places at once")
    aliases: dict[str, str] = setting(
        default={}, read=lambda _, value: cast("dict[str, str]", value), opens=False, summary="names of places"
    )


class WeatherMapSettings(Table, name="weather_map"):
    """A table whose name begins like another."""

    zoom: int = setting(default=3, read=read_positive, summary="how near")


def with_weather() -> Plugins:
    plugins = Plugins()
    plugins.add_settings("weather", WeatherSettings)
    plugins.add_settings("weather_map", f"{__name__}:WeatherMapSettings")
    return plugins


def test_a_package_declares_a_table_which_is_set_like_ours(root, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    write(root, "[weather]\nunits = 'imperial'\n[weather.aliases]\nhome = 'Oslo'")
    environment = {"TOOLCRIB_WEATHER_MOST": "7", "TOOLCRIB_WEATHER_MAP_ZOOM": "9"}
    settings = load_settings(root, environment, with_weather().tables(), {"weather": {"key": "WEATHER_KEY"}})
    weather = settings.table(WeatherSettings)
    assert weather == WeatherSettings(units="imperial", key="WEATHER_KEY", most=7, aliases={"home": "Oslo"})
    assert settings["weather_map"].zoom == 9
    assert settings.where("weather.units") == "weather.units in toolcrib.toml"


def test_a_map_is_not_set_by_a_variable():
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {"TOOLCRIB_WEATHER_ALIASES": "x"}, with_weather().tables())
    told = "the environment: TOOLCRIB_WEATHER_ALIASES cannot be set there; write weather.aliases in toolcrib.toml"
    assert caught.value.message == told


def test_a_package_that_is_not_installed_leaves_its_settings_unknown(root):
    write(root, "[weather]\nunits = 'imperial'")
    assert "install the package that declares it" in refusal(root)
    write(root, "")
    message = refusal(root, {"TOOLCRIB_WEATHER_UNITS": "imperial"})
    assert message.startswith(
        "the environment: TOOLCRIB_WEATHER_UNITS is not a setting of Toolcrib or of an installed package"
    )


def test_a_package_cannot_replace_a_table_of_ours(root):
    plugins = with_weather()
    plugins.add_settings("sandbox", WeatherSettings)
    assert plugins.tables()["sandbox"] is SandboxSettings


def test_a_table_that_cannot_be_loaded_is_refused_by_its_name(root):
    plugins = Plugins()
    plugins.add_settings("weather", "no_such_module:Weather")
    write(root, "[weather]\nunits = 'imperial'")
    with pytest.raises(SettingsError) as caught:
        load_settings(root, {}, plugins.tables())
    assert "toolcrib.toml: the table [weather] cannot be used: ModuleNotFoundError" in caught.value.message
    write(root, "")
    assert load_settings(root, {}, plugins.tables()).places == {}


def test_a_key_that_every_table_has_is_refused_where_it_is_declared():
    with pytest.raises(TypeError, match="a table has 'values' of its own"):
        type("Bad", (Table,), {"values": setting(default="", read=read_text, summary="x")}, name="bad")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x.timeout_ms = 1\nx.grants = [", "toolcrib.toml:2:13: invalid value; correct the TOML there"),
        ("timeout_ms = 1\ngrants = yes", "toolcrib.toml:2:10: invalid value; correct the TOML there"),
        ("timeout_ms = 1\ntimeout_ms = 2\n", "toolcrib.toml:2:15: cannot overwrite a value; correct the TOML there"),
        (b"# Gr\xfc\xdfe", "not UTF-8 at byte 4; save it as UTF-8"),
        (b"x = 1\0", "toolcrib.toml:1:6: expected newline"),
        ("x = " + "[" * 100_000, ""),
        ("x = " + "9" * 10_000, "too many digits"),
        (f"{'a.' * 100_000}b = 1", "toolcrib.toml"),
        (b"#" * 1_000_001, "is not a file of at most 1000000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name_and_line(root, text, told):
    file = write(root, text)
    message = refusal(root)
    assert message.startswith(str(file))
    assert told in message


def timeout_of(root: Path, environment=None) -> int:
    return load(root, environment).table(CallsSettings).timeout_ms


def test_a_byte_order_mark_is_no_setting(root):
    write(root, b"\xef\xbb\xbfcalls.timeout_ms = 5")
    assert timeout_of(root) == 5


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda file: file.symlink_to("nowhere")])
def test_something_else_in_place_of_the_file_is_reported(root, make):
    make(root / "toolcrib.toml")
    assert "toolcrib.toml is not a file" in refusal(root)


def test_the_file_may_be_a_link_and_may_be_absent(root, tmp_path):
    assert timeout_of(root) == 30_000
    (tmp_path / "elsewhere.toml").write_text("calls.timeout_ms = 5")
    (root / "toolcrib.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert timeout_of(root) == 5


def test_a_workspace_that_is_no_folder_is_refused_with_where_it_was_set(root):
    (root / "file").write_text("")
    for name in ("absent", "file"):
        told = refusal(root, workspace={"folder": name})
        assert told.endswith("is not a folder; workspace.folder in the host program")


def test_rules_of_the_operator_are_read_from_tables(root):
    write(
        root,
        "[[rules]]\nname = 'a'\nforbidden_patterns = ['x', 'y']\n[[rules]]\nname = 'b'\nforbidden_patterns = ['z']\ninclude_text = true",
    )
    assert load(root).table(RulesSettings).rules == (
        CustomRule(name="a", forbidden_patterns=("x", "y")),
        CustomRule(name="b", forbidden_patterns=("z",), include_text=True),
    )


def test_nothing_but_our_own_variables_is_looked_at(root):
    environment = {"CALLS_TIMEOUT_MS": "1", "XTOOLCRIB_CALLS_TIMEOUT_MS": "2", "toolcrib_calls_timeout_ms": "3"}
    assert load(root, environment).places == {}


@pytest.mark.parametrize("word", ["HOME", "tool:", ":HOME", "tool:A B", "tool:Ü", "tool:1A"])
def test_a_grant_of_a_variable_names_tool_and_variable(root, word):
    assert "write 'tool:NAME' or '*:NAME'" in refusal(root, access={"variables": [word]})


def choose(trusted: Path, other: Path) -> str:
    return f"choose {trusted} or {other}"


def test_the_project_is_the_nearest_folder_with_settings_else_the_given_one(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_project(below, choose, TABLES) == below
    (tmp_path / "toolcrib.toml").write_text("")
    assert find_project(below, choose, TABLES) == tmp_path


def test_settings_inside_another_project_are_refused_where_they_open_something(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    for folder in (tmp_path, below):
        (folder / "toolcrib.toml").write_text("calls.timeout_ms = 5")
    assert find_project(below, choose, TABLES) == below
    (below / "toolcrib.toml").write_text('[sandbox]\nrequire = ["env"]')
    with pytest.raises(SettingsError) as caught:
        find_project(below, choose, TABLES)
    assert caught.value.message == (
        f"{below}/toolcrib.toml sets sandbox.require inside the project {tmp_path}, whose tools may have written it; "
        f"choose {below} or {tmp_path}"
    )
    # Those of a folder on the way up are looked at in the same way.
    deeper = below / "c"
    deeper.mkdir()
    with pytest.raises(SettingsError, match=r"sets sandbox\.require inside the project"):
        find_project(deeper, choose, TABLES)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[weather]\nunits = 'imperial'", None),
        ("[weather]\nkey = 'KEY'", "weather.key"),
        ("[weather]\nunknown = 1", "weather.unknown"),
        ("[unknown]", "unknown"),
        ("unknown = 1", "unknown"),
        ("weather = 1", "weather"),
        ("[calls]\nmax_steps = 100\n[[rules]]\nname = 'x'\nforbidden_patterns = ['y']", None),
    ],
)
def test_inside_another_project_a_key_opens_something_unless_its_declaration_says_otherwise(tmp_path, text, name):
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "toolcrib.toml").write_text("")
    (below / "toolcrib.toml").write_text(text)
    tables = with_weather().tables()
    if name is None:
        assert find_project(below, choose, tables) == below
        return
    with pytest.raises(SettingsError, match=f"sets {name} inside the project"):
        find_project(below, choose, tables)


def test_settings_that_a_stranger_put_further_up_are_refused(tmp_path):
    below = tmp_path / "mine"
    below.mkdir()
    (tmp_path / "toolcrib.toml").write_text("")
    stranger = os.getuid() + 4711

    def owner_of(path: Path) -> int:
        return stranger if path.name == "toolcrib.toml" else os.getuid()

    with pytest.raises(SettingsError) as caught:
        find_project(below, choose, TABLES, owner_of)
    assert caught.value.message == f"{tmp_path}/toolcrib.toml belongs to another user; choose {tmp_path} or {below}"
    assert find_project(tmp_path, choose, TABLES, owner_of) == tmp_path
    assert find_project(below, choose, TABLES, lambda _: stranger) == tmp_path
