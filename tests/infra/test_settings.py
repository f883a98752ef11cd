"""Settings from file, environment and arguments: the later one wins, and nothing that was written is passed over."""

import os
from dataclasses import fields
from pathlib import Path

import pytest

from toolcrib import Crib, SettingsError
from toolcrib.infra.settings import COMMAND_LINE, Settings, find_project, load_settings
from toolcrib.infra.settings.readers import CustomRule

HTTP_NUMBERS = [
    *("calls_per_minute", "concurrency", "queue", "connections", "address_connections"),
    *("header_seconds", "body_seconds", "total_seconds", "body_bytes", "drain_seconds"),
]

# Each setting as it is written in the file, in the environment and as an argument, and what becomes of it.
WRITTEN = {
    "workspace": ('workspace = "work"', "work", "work", None),
    "workspace_open": ('workspace_open = [".env.test"]', ".env.test", [".env.test"], (".env.test",)),
    "tools": ('tools = ["a", "b", "a"]', "a, b", ["a", "b"], ("a", "b")),
    "scripts": ('scripts = ["a", "~/b"]', "a,~/b", ["a", "~/b"], ("a", "~/b")),
    "variables": ('variables = ["deploy:HOME"]', "deploy:HOME", ["deploy:HOME"], frozenset({"deploy:HOME"})),
    "modules": ('modules = ["a.b"]', "a.b", ("a.b",), ("a.b",)),
    "rule_modules": ('rule_modules = ["r"]', "r", ["r"], ("r",)),
    "grants": ('grants = ["net.http"]', "net.http", ["net.http"], frozenset({"net.http"})),
    "disabled": ('disabled = ["shell", "x/*"]', "shell,x/*,", {"shell", "x/*"}, frozenset({"shell", "x/*"})),
    "builtins": ("builtins = false", "False", False, False),
    "rules_off": ('rules_off = ["sensitive_files"]', "sensitive_files", ["sensitive_files"], {"sensitive_files"}),
    "timeout_ms": ("timeout_ms = 5", " 5 ", 5, 5),
    "queue_url": ('[queue]\nurl = "redis://h:1/0"', "redis://h:1/0", "redis://h:1/0", "redis://h:1/0"),
    "queue_secret": ('[queue]\nsecret = "PASSWORD"', "PASSWORD", "PASSWORD", "PASSWORD"),
    "queue_requests": ('[queue]\nrequests = "a:b"', "a:b", "a:b", "a:b"),
    "queue_ready": ('[queue]\nready = "a:c"', "a:c", "a:c", "a:c"),
    "queue_hash": ('[queue]\nhash = "wishes"', "wishes", "wishes", "wishes"),
    "queue_original": ("[queue]\noriginal = true", "true", True, True),
    "request_missing": ("[request]\nmissing = true", "true", True, True),
    "request_strict": ("[request]\nstrict = true", "true", True, True),
    "builder_maker": ('[builder]\nmaker = "command"', "command", "command", "command"),
    "builder_command": ('[builder]\ncommand = ["a", "b", "b"]', "a,b,b", ["a", "b", "b"], ("a", "b", "b")),
    "builder_hosts": ('[builder]\nhosts = ["h.example"]', "h.example", ["h.example"], ("h.example",)),
    "builder_variables": ('[builder]\nvariables = ["KEY"]', "KEY", ["KEY"], ("KEY",)),
    "builder_url": ('[builder]\nurl = "https://h/v1"', "https://h/v1", "https://h/v1", "https://h/v1"),
    "builder_model": ('[builder]\nmodel = "m"', "m", "m", "m"),
    "builder_key": ('[builder]\nkey = "API_KEY"', "API_KEY", "API_KEY", "API_KEY"),
    "builder_seconds": ("[builder]\nseconds = 5", "5", 5, 5),
    "builder_attempts": ("[builder]\nattempts = 5", "5", 5, 5),
    "builder_call_seconds": ("[builder]\ncall_seconds = 5", "5", 5, 5),
    "builder_disk_mb": ("[builder]\ndisk_mb = 5", "5", 5, 5),
    "builder_lease_seconds": ("[builder]\nlease_seconds = 5", "5", 5, 5),
    "builder_capabilities": ('[builder]\ncapabilities = ["net.*"]', "net.*", ["net.*"], frozenset({"net.*"})),
    "builder_unproved": ("[builder]\nunproved = true", "true", True, True),
    "shell_timeout_ms": ("[shell]\ntimeout_ms = 6", "6", 6, 6),
    "result_bytes": ("result_bytes = 7", "7", 7, 7),
    "confirmation_seconds": ("[confirmation]\nseconds = 8", "8", 8, 8),
    "max_steps": ("max_steps = 9", "9", 9, 9),
    "sandbox_require": ('[sandbox]\nrequire = ["env", "net"]', "env,net", ["env", "net"], ("env", "net")),
    "egress_private": ('[egress]\nprivate = ["127.0.0.1:80"]', "127.0.0.1:80", ["127.0.0.1:80"], ("127.0.0.1:80",)),
    "sandbox_jobs": ("[sandbox]\njobs = 2", "2", 2, 2),
    "sandbox_queue": ("[sandbox]\nqueue = 3", "3", 3, 3),
    "sandbox_memory_mb": ("[sandbox]\nmemory_mb = 4", "4", 4, 4),
    "sandbox_processes": ("[sandbox]\nprocesses = 5", "5", 5, 5),
    "sandbox_disk_mb": ("[sandbox]\ndisk_mb = 6", "6", 6, 6),
    "depot_keys": ('[depot]\nkeys = ["ed25519:AA"]', "ed25519:AA", ["ed25519:AA"], ("ed25519:AA",)),
    "depot_signed": ("[depot]\nsigned = true", "true", True, True),
    "watch": ("watch = true", "true", True, True),
    "handler_workers": ("[handler]\nworkers = 2", "2", 2, 2),
    "handler_fresh": ("[handler]\nfresh = true", "true", True, True),
    "allowed_hosts": ('allowed_hosts = ["*.example.com"]', "*.example.com", ["*.example.com"], ("*.example.com",)),
    "application_version": ('application_version = "7"', "7", "7", "7"),
    "models": ('models = ["small"]', "small", ["small"], ("small",)),
    "max_tools": ("max_tools = 2", "2", 2, 2),
    "max_retries": ("max_retries = 3", "3", 3, 3),
    "max_sent_bytes": ("max_sent_bytes = 5", "5", 5, 5),
    "max_response_bytes": ("max_response_bytes = 6", "6", 6, 6),
    "secrets_environment": ('[secrets]\nenvironment = ["KEY"]', "KEY", ["KEY"], ("KEY",)),
    "secrets_file": ('[secrets]\nfile = "s.env"', "s.env", "s.env", Path("s.env")),
    "secrets_keyring": ('[secrets]\nkeyring = "crib"', "crib", "crib", "crib"),
    "search_index": ("[search]\nindex = false", "false", False, False),
    "http_host": ('[http]\nhost = "::1"', "::1", "::1", "::1"),
    "http_port": ("[http]\nport = 9", "9", 9, 9),
    "http_hosts": ('[http]\nhosts = ["a.example"]', "a.example", ["a.example"], ("a.example",)),
    "http_origins": ('[http]\norigins = ["https://a"]', "https://a", ["https://a"], ("https://a",)),
    **{f"http_{name}": (f"[http]\n{name} = 7", "7", 7, 7) for name in HTTP_NUMBERS},
}
NUMBERS = [
    *("timeout_ms", "shell_timeout_ms", "result_bytes", "confirmation_seconds", "max_steps"),
    *("sandbox_jobs", "sandbox_queue", "sandbox_memory_mb", "sandbox_processes", "sandbox_disk_mb"),
    *("handler_workers", "max_tools", "max_retries", "max_sent_bytes", "max_response_bytes", "http_port"),
    *(f"http_{name}" for name in HTTP_NUMBERS),
]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path


def write(root: Path, text: str | bytes) -> Path:
    file = root / "toolcrib.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refusal(root: Path | None, environment=None, /, **given) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(root, environment or {}, **given)
    return caught.value.message


def test_every_setting_is_tried_here_and_has_its_line_in_the_docstring():
    names = {field.name for field in fields(Settings)} - {"root", "places"}
    assert set(WRITTEN) == names - {"rules"}
    meanings = [line.strip() for line in Settings.__doc__.splitlines()]
    for field in fields(Settings):
        assert any(line.startswith(f"{field.name}: ") for line in meanings), field.name


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("source", ["file", "environment", "argument"])
def test_every_setting_can_be_set_everywhere_and_says_where_it_was(root, name, source):
    text, variable, argument, expected = WRITTEN[name]
    environment, given = {"HOME": "/", "PATH": ""}, {}
    if source == "file":
        write(root, text)
        place = "toolcrib.toml"
    elif source == "environment":
        environment[f"TOOLCRIB_{name.upper()}"] = variable
        place = "the environment"
    else:
        given = {name: argument}
        place = "the host program"
    settings = load_settings(root, environment, **given)
    if name == "workspace":
        expected = (root / "work").resolve()
    assert getattr(settings, name) == expected
    assert settings.where(name) == f"{name} in {place}"
    others = [field.name for field in fields(Settings) if field.name not in {name, "root", "places", "workspace"}]
    assert {other: getattr(settings, other) for other in others} == {
        other: getattr(Settings(), other) for other in others
    }


def test_the_argument_wins_over_the_environment_and_that_over_the_file(root):
    write(root, "timeout_ms = 1\nmax_steps = 1\nresult_bytes = 1")
    environment = {"TOOLCRIB_TIMEOUT_MS": "2", "TOOLCRIB_MAX_STEPS": "2"}
    settings = load_settings(root, environment, timeout_ms=3, max_steps=None)
    assert (settings.timeout_ms, settings.max_steps, settings.result_bytes) == (3, 2, 1)
    assert settings.where("timeout_ms") == "timeout_ms in the host program"
    assert settings.where("shell_timeout_ms") == "the default of shell_timeout_ms"


def test_grants_replace_earlier_ones_and_may_close_everything_but_those_of_the_command_line_are_added(root):
    write(root, 'grants = ["net.http"]')
    assert load_settings(root, {"TOOLCRIB_GRANTS": ""}).grants == frozenset()
    assert load_settings(root, {"TOOLCRIB_GRANTS": "a.b"}, grants=["c.d"]).grants == {"c.d"}
    assert load_settings(root, {}, grants=[]).grants == frozenset()
    settings = load_settings(root, {}, COMMAND_LINE, grants=["c.d"])
    assert settings.grants == {"net.http", "c.d"}
    assert settings.where("grants") == "grants in the command line"


@pytest.mark.spec("S4-34")
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [0, -1, 2**31, 10**30, True, 1.5, "5"])
def test_a_number_must_be_greater_than_nothing(root, name, value):
    assert f"the host program: {name} must be a whole number greater than 0" in refusal(root, **{name: value})
    if not isinstance(value, str):
        write(root, f"{name} = {str(value).lower()}")
        told = "must be a whole number greater than 0" if abs(value) < 2**64 else "an integer beyond 64 bit"
        assert f"toolcrib.toml: {name}" in refusal(root)
        assert told in refusal(root)
        write(root, "")
    if not isinstance(value, str):
        environment = {f"TOOLCRIB_{name.upper()}": str(value)}
        assert f"the environment: {name} must be a whole number greater than 0" in refusal(root, environment)


@pytest.mark.spec("S4-34")
@pytest.mark.parametrize("text", ["[shell]\ntimeout_ms = 0", "shell_timeout_ms = -5"])
def test_a_crib_does_not_start_with_a_time_limit_for_the_shell_that_is_none(root, text):
    write(root, text)
    with pytest.raises(SettingsError, match=r"toolcrib\.toml: shell_timeout_ms must be a whole number greater than 0"):
        Crib(root)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('timeout_ms = "5"', "timeout_ms must be a whole number"),
        ("builtins = 1", "builtins must be true or false, not 1"),
        ('builtins = "false"', "builtins must be true or false, not 'false'"),
        ('grants = "net.http"', 'grants must be a list of texts, such as grants = ["…"]'),
        ("grants = [1]", "grants must hold texts only"),
        ('grants = [""]', "grants must hold texts only"),
        ('tools = ["a\\u0000b"]', "tools must hold texts only"),
        ("[grants]\nnet = true", "grants must be a list of texts"),
        ("workspace = 5", "workspace must be a path, not 5"),
        ('workspace = ""', "workspace must be a path, not ''"),
        ('[sandbox]\nrequire = ["fsx"]', "sandbox_require: unknown guarantee 'fsx'; known are fs, net"),
        ('rules_off = ["everything"]', "rules_off: no default rule is called 'everything'"),
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
def test_a_value_of_the_wrong_kind_is_named_by_file_and_key(root, text, told):
    write(root, text)
    assert refusal(root).startswith(f"toolcrib.toml: {told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("timeout = 5", "unknown setting 'timeout'; did you mean 'timeout_ms'?"),
        ("grant = []", "unknown setting 'grant'; did you mean 'grants'?"),
        ("[sandbx]\nrequire = []", "unknown setting 'sandbx.require'; did you mean 'sandbox_require'?"),
        ("[sandbox]\nrequired = []", "unknown setting 'sandbox_required'; did you mean 'sandbox_require'?"),
        ("[shell]\ntimeout = 5", "unknown setting 'shell_timeout'; did you mean 'shell_timeout_ms'?"),
        ("[egres]", "unknown setting 'egres'"),
        ("root = '/'", "unknown setting 'root'"),
        ("places = 1", "unknown setting 'places'"),
        (
            "zzzzzzzz = 1",
            "unknown setting 'zzzzzzzz'; known are allowed_hosts, application_version, builder_attempts, ",
        ),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_one(root, text, told):
    write(root, text)
    assert refusal(root).startswith(f"toolcrib.toml: {told}")


@pytest.mark.parametrize("name", ["timeout", "grant", "root", "places"])
def test_an_unknown_argument_is_refused(root, name):
    assert refusal(root, **{name: "x"}).startswith(f"the host program: unknown setting {name!r}")


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("TOOLCRIB_GRANT", "did you mean TOOLCRIB_GRANTS?"),
        ("TOOLCRIB_DISABLE", "did you mean TOOLCRIB_DISABLED?"),
        ("TOOLCRIB_shell_timeout_ms", "did you mean TOOLCRIB_SHELL_TIMEOUT_MS?"),
        ("TOOLCRIB_", "remove it"),
        ("TOOLCRIB_ZZZZ", "remove it"),
    ],
)
def test_a_variable_that_sets_nothing_is_refused_because_it_may_have_been_meant_to_close_something(variable, hint):
    assert refusal(None, {variable: "shell"}) == f"the environment: {variable} is no setting; {hint}"


def test_rules_cannot_be_squeezed_into_a_variable():
    assert "write [[rules]] in toolcrib.toml" in refusal(None, {"TOOLCRIB_RULES": "x"})


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("TIMEOUT_MS", "soon", "timeout_ms must be a whole number"),
        ("TIMEOUT_MS", "", "timeout_ms must be a whole number"),
        ("TIMEOUT_MS", "9" * 5000, "timeout_ms must be a whole number"),
        ("BUILTINS", "no", "builtins must be true or false, not 'no'"),
        ("SANDBOX_REQUIRE", "everything", "sandbox_require: unknown guarantee 'everything'"),
        ("WORKSPACE", "", "workspace must be a path"),
    ],
)
def test_a_variable_with_a_wrong_value_is_refused(variable, value, told):
    assert refusal(None, {f"TOOLCRIB_{variable}": value}).startswith(f"the environment: {told}")


def test_the_same_setting_twice_is_refused(root):
    write(root, "shell_timeout_ms = 1\n[shell]\ntimeout_ms = 2")
    assert "shell_timeout_ms is set twice" in refusal(root)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("timeout_ms = 1\ngrants = [", "toolcrib.toml:2:11: invalid value; correct the TOML there"),
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


def test_a_byte_order_mark_is_no_setting(root):
    write(root, b"\xef\xbb\xbftimeout_ms = 5")
    assert load_settings(root, {}).timeout_ms == 5


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda file: file.symlink_to("nowhere")])
def test_whatever_stands_in_place_of_the_file_is_not_passed_over(root, make):
    make(root / "toolcrib.toml")
    assert "toolcrib.toml is not a file" in refusal(root)


def test_the_file_may_be_a_link_and_may_be_absent(root, tmp_path):
    assert load_settings(root, {}).timeout_ms == 30_000
    (tmp_path / "elsewhere.toml").write_text("timeout_ms = 5")
    (root / "toolcrib.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert load_settings(root, {}).timeout_ms == 5


def test_a_workspace_that_is_no_folder_is_refused_with_where_it_was_set(root):
    (root / "file").write_text("")
    for name in ("absent", "file"):
        assert refusal(root, workspace=name).endswith("is not a folder; workspace in the host program")


def test_rules_of_the_operator_are_read_from_tables(root):
    write(
        root,
        "[[rules]]\nname = 'a'\nforbidden_patterns = ['x', 'y']\n[[rules]]\nname = 'b'\nforbidden_patterns = ['z']\ninclude_text = true",
    )
    assert load_settings(root, {}).rules == (
        CustomRule(name="a", forbidden_patterns=("x", "y")),
        CustomRule(name="b", forbidden_patterns=("z",), include_text=True),
    )


def test_nothing_but_our_own_variables_is_looked_at(root):
    environment = {"TIMEOUT_MS": "1", "XTOOLCRIB_TIMEOUT_MS": "2", "toolcrib_timeout_ms": "3"}
    assert load_settings(root, environment) == load_settings(root, {})


@pytest.mark.parametrize("word", ["HOME", "tool:", ":HOME", "tool:A B", "tool:Ü", "tool:1A"])
def test_a_grant_of_a_variable_names_tool_and_variable(root, word):
    assert "write 'tool:NAME' or '*:NAME'" in refusal(root, variables=[word])


def choose(trusted: Path, other: Path) -> str:
    return f"choose {trusted} or {other}"


def test_the_project_is_the_nearest_folder_with_settings_else_the_given_one(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_project(below, choose) == below
    (tmp_path / "toolcrib.toml").write_text("")
    assert find_project(below, choose) == tmp_path


def test_settings_inside_another_project_are_refused_where_they_open_something(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    for folder in (tmp_path, below):
        (folder / "toolcrib.toml").write_text("timeout_ms = 5")
    assert find_project(below, choose) == below
    (below / "toolcrib.toml").write_text('[sandbox]\nrequire = ["env"]')
    with pytest.raises(SettingsError) as caught:
        find_project(below, choose)
    assert caught.value.message == (
        f"{below}/toolcrib.toml sets sandbox_require inside the project {tmp_path}, whose tools may have written it; "
        f"choose {below} or {tmp_path}"
    )
    # Those of a folder on the way up are looked at in the same way.
    deeper = below / "c"
    deeper.mkdir()
    with pytest.raises(SettingsError, match="sets sandbox_require inside the project"):
        find_project(deeper, choose)


def test_settings_that_a_stranger_put_further_up_are_refused(tmp_path):
    below = tmp_path / "mine"
    below.mkdir()
    (tmp_path / "toolcrib.toml").write_text("")
    stranger = os.getuid() + 4711

    def owner_of(path: Path) -> int:
        return stranger if path.name == "toolcrib.toml" else os.getuid()

    with pytest.raises(SettingsError) as caught:
        find_project(below, choose, owner_of)
    assert caught.value.message == f"{tmp_path}/toolcrib.toml belongs to another user; choose {tmp_path} or {below}"
    assert find_project(tmp_path, choose, owner_of) == tmp_path
    assert find_project(below, choose, lambda _: stranger) == tmp_path
