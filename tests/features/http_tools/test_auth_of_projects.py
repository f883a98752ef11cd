"""Credentials in a whole project: documents and scripts declare them alike, commands store what they need, nothing tells of them."""

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from authorization_site import CLIENT_ID, CLIENT_SECRET, AuthorizationSite
from toolcrib import Crib
from toolcrib.infra.oauth import read_tokens
from toolcrib.infra.secrets.lookup import Secrets
from warm_python import WarmPython

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
SECONDS = 30
ROOT = Path(__file__).parents[3]


@pytest.fixture
def site():
    with AuthorizationSite() as running:
        yield running


@pytest.fixture
def home(project, site, monkeypatch):
    """A project whose tools may reach the authorization server and its interface."""
    (project / "toolcrib.toml").write_text(
        f'[http_tools]\nhosts = ["{site.endpoint}"]\n[egress]\nprivate = ["{site.endpoint}"]\n'
        f'[grants]\n"*" = ["net.*"]\n[access]\nvariables = ["orders:SHOP_TOKEN", "orders:CRM"]\n'
    )
    monkeypatch.chdir(project)
    return project


def document(url, auth, **impl):
    return {
        "schemaVersion": "toolcrib-1",
        "slug": "orders",
        "version": "v1",
        "displayName": "Orders",
        "description": "List the open orders",
        "type": "http",
        "isEnabled": True,
        "argSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "outputSchema": {},
        "impl": {"urlTemplate": url, "auth": auth, **impl},
    }


def store(home, tool):
    """Write the folder of a bundle that `crib bundle load` takes."""
    folder = home / "signed"
    folder.mkdir(exist_ok=True)
    about = {"bundleID": BUNDLE, "slug": "signed", "displayName": "Signed", "description": "Signed", "isEnabled": True}
    (folder / "bundle.json").write_text(json.dumps(about))
    (folder / "orders.json").write_text(json.dumps(tool))
    return str(folder)


def script(home, url, auth):
    folder = home / ".ai" / "tools" / "shop"
    folder.mkdir(parents=True)
    lines = [f"    {name}: {json.dumps(value)}" for name, value in auth.items()]
    text = "\n".join(
        [
            "tool_id: orders",
            "tool_type: http",
            'version: "1.0.0"',
            "description: List the open orders",
            "executor_id: http_client",
            "category: shop",
            "requires: [net.http]",
            "config:",
            f'  url: "{url}"',
            "  auth:",
            *lines,
            "parameters: []",
        ]
    )
    (folder / "orders.yaml").write_text(text + "\n")


def secrets_of(home):
    return Secrets(home / ".toolcrib", environment={})


def login_auth(site, **facts):
    return {
        "type": "oauth2",
        "grant": "authorization_code",
        "login": "CRM",
        "authorization_url": site.url("/authorize"),
        "token_url": site.url("/token"),
        "client_id": CLIENT_ID,
        "client_secret": "${secret:CLIENT}",
        "scopes": ["read"],
        **facts,
    }


class LoginRun:
    """`crib secret login CRM` in a process of its own."""

    def __init__(self, *words):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.child = WarmPython(["-m", "toolcrib", "secret", "login", "CRM", *words], **pipes)
        # Where standard output is JSON, a person reads the other one.
        shown = self.child.stderr if "--json" in words else self.child.stdout
        self.address = shown.readline().strip()

    def visit(self):
        """What a browser does; gives where it ends."""
        with urllib.request.urlopen(self.address, timeout=SECONDS) as page:
            return page.read().decode()

    def end_address(self):
        """The address that a browser on another machine ends at, where no server answers."""

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None

        try:
            urllib.request.build_opener(Stay).open(self.address, timeout=SECONDS)
        except urllib.error.HTTPError as moved:
            return moved.headers["Location"]
        raise AssertionError("no redirect")

    def end(self, typed=None):
        out, err = self.child.communicate(typed, timeout=SECONDS)
        return self.child.returncode, out, err

    def kill(self):
        self.child.kill()
        self.child.communicate()


@pytest.fixture
def declare(home, site):
    """Store a tool that needs the login."""

    def put(**facts):
        secrets_of(home).set("CLIENT", CLIENT_SECRET)
        about = {"slug": "signed", "displayName": "S", "description": "S", "isEnabled": True}
        with Crib(home) as crib:
            crib.bundles.put_bundle(BUNDLE, about)
            crib.bundles.put_tool(BUNDLE, "orders", "v1", document(site.url("/api"), login_auth(site, **facts)))

    return put


@pytest.fixture
def log_in(declare):
    """Start the login of a stored tool."""
    runs = []

    def start(*words, **facts):
        declare(**facts)
        runs.append(LoginRun(*words))
        return runs[-1]

    yield start
    for run in runs:
        run.kill()


def test_a_document_with_a_bad_declaration_is_refused_with_every_defect(home, cli):
    bad = {"type": "hmac", "key": "sk-live-9f1c", "string": "${tme}", "headers": {"X": "1"}, "extra": 1}
    ended = cli("bundle", "load", store(home, document("https://api.example.com/", bad)))
    assert ended.code != 0
    told = ended.out + ended.err
    for place in ("impl.auth.key: name a secret", "impl.auth.string: '${tme}'", "impl.auth.headers: no header carries"):
        assert place in told
    assert "impl.auth.extra: is unknown" in told
    assert "9f1c" not in told
    ended = cli("bundle", "load", store(home, document("https://api.example.com/", {})))
    assert "impl.auth: is empty" in ended.out + ended.err
    clash = document("https://api.example.com/", {"type": "bearer", "token": "${secret:T}"})
    clash["impl"]["headers"] = {"authorization": "x"}
    ended = cli("bundle", "load", store(home, clash))
    assert "impl.headers.authorization: is written by auth; remove it" in ended.out + ended.err


def test_a_script_with_a_bad_declaration_is_a_problem_of_crib_check(home, cli):
    script(home, "{url}", {"type": "bearer", "token": "sk-live-9f1c"})
    ended = cli("check")
    assert ended.code != 0
    assert "auth.token: name a secret" in ended.out
    assert "auth: a caller would choose who gets the credentials" in ended.out
    assert "9f1c" not in ended.out + ended.err


def test_a_secret_that_is_missing_is_found_by_check_and_explain(home, cli, site):
    script(home, site.url("/api"), {"type": "bearer", "token": "${secret:SHOP_TOKEN}"})
    ended = cli("check")
    assert "run: crib secret set SHOP_TOKEN" in ended.out
    told = " ".join(cli("explain", "orders").out.split())
    assert "there is no secret of that name cure: run: crib secret set SHOP_TOKEN" in told
    secrets_of(home).set("SHOP_TOKEN", "shop-7f3a-51c9")
    assert "SHOP_TOKEN" not in cli("check").out


def test_a_login_and_a_secret_that_are_missing_are_named_at_once(home, cli, site):
    auth = login_auth(site, token_url="https://login.example.com/token")
    cli("bundle", "load", store(home, document(site.url("/api"), auth)))
    out = cli("check").out
    assert "${secret:CLIENT}: there is no secret of that name; run: crib secret set CLIENT" in out
    assert "auth: there is no login CRM yet; log in with: crib secret login CRM" in out
    assert "login.example.com is not among the allowed hosts" in out


def test_a_script_needs_the_grant_of_its_secret(home, cli, site):
    (home / "toolcrib.toml").write_text(
        (home / "toolcrib.toml").read_text().replace("orders:SHOP_TOKEN", "x:SHOP_TOKEN")
    )
    secrets_of(home).set("SHOP_TOKEN", "shop-7f3a-51c9")
    script(home, site.url("/api"), {"type": "bearer", "token": "${secret:SHOP_TOKEN}"})
    assert 'and add "orders:SHOP_TOKEN" to access.variables' in cli("check").out
    ended = cli("call", "orders")
    assert "CAPABILITY_MISSING" in ended.err
    assert site.api_requests == []


@pytest.mark.parametrize("spelling", ["document", "script"])
def test_both_spellings_send_the_same_credentials_and_mask_them(home, site, spelling, cli, caplog):
    token = site.issue().access_token
    secrets_of(home).set("SHOP_TOKEN", token)
    auth = {"type": "bearer", "token": "${secret:SHOP_TOKEN}"}
    if spelling == "script":
        script(home, site.url("/api"), auth)
    else:
        assert cli("bundle", "load", store(home, document(site.url("/api"), auth))).code == 0
    caplog.set_level("DEBUG")
    told = [cli(*words) for words in (("call", "orders"), ("explain", "orders"), ("show", "orders", "--json"))]
    assert '"city": "Oslo"' in told[0].out
    assert site.api_requests[0][1]["Authorization"] == f"Bearer {token}"
    site.revoke()
    refused = cli("call", "orders")
    assert "AUTH" in refused.err
    everything = "".join(ended.out + ended.err for ended in (*told, refused)) + caplog.text
    files = [path.read_bytes() for path in (home / ".toolcrib").rglob("*") if path.is_file()]
    assert token not in everything
    assert not any(token.encode() in data for data in files)


@pytest.mark.spec("S1-87")
def test_a_token_of_a_project_is_got_once_and_used_by_the_next_process(home, site, cli):
    secrets_of(home).set("CLIENT", CLIENT_SECRET)
    auth = {
        "type": "oauth2",
        "grant": "client_credentials",
        "token_url": site.url("/token"),
        "client_id": CLIENT_ID,
        "client_secret": "${secret:CLIENT}",
    }
    assert cli("bundle", "load", store(home, document(site.url("/api"), auth))).code == 0
    for _ in range(2):
        assert '"city": "Oslo"' in cli("call", "orders").out
    assert len(site.token_requests) == 1
    # A new secret never meets the tokens of the old one.
    secrets_of(home).set("CLIENT", "another")
    ended = cli("call", "orders")
    assert "gave no token: invalid_client" in ended.err
    assert "check client_id and ${secret:CLIENT}" in ended.err


def test_a_login_in_a_browser_is_stored_and_the_tool_works(home, site, log_in, cli):
    run = log_in()
    assert "You are logged in" in run.visit()
    code, out, err = run.end()
    assert (code, out) == (0, "stored CRM for orders\n")
    assert "open this address in a browser" in err
    stored = read_tokens(secrets_of(home).get("CRM").reveal())
    assert (stored.access_token, stored.scope) == (site.good[-1], "read")
    assert stored.access_token not in out + err
    assert "code=" not in out + err
    assert '"city": "Oslo"' in cli("call", "orders").out
    site.revoke()
    assert '"city": "Oslo"' in cli("call", "orders").out
    # The tokens of a login go with it.
    assert cli("secret", "remove", "CRM").code == 0
    assert json.loads((home / ".toolcrib" / "access_tokens.json").read_text())["secrets"] == {}
    ended = cli("call", "orders")
    assert "there is no login CRM yet; log in with: crib secret login CRM" in ended.err


def test_a_login_with_json_output_prints_one_document(log_in):
    run = log_in("--json")
    run.visit()
    code, out, err = run.end()
    assert code == 0, err
    assert json.loads(out) == {"name": "CRM", "from": "this project", "tools": ["orders"]}


def test_a_browser_on_another_machine_ends_at_an_address_that_is_pasted(home, site, log_in):
    run = log_in()
    address = run.end_address()
    assert parse_qs(urlsplit(address).query)["code"]
    code, out, err = run.end(f"http://127.0.0.1:1/wrong\n{address}\n")
    assert (code, out) == (0, "stored CRM for orders\n")
    assert "this is not the address that the login ends at" in err
    assert read_tokens(secrets_of(home).get("CRM").reveal()).access_token in site.good


def test_an_unfinished_login_ends_by_itself_and_stores_nothing(home, log_in):
    run = log_in("--timeout", "1")
    code, _, err = run.end()
    assert code != 0
    assert "the login was not completed within 1 s; nothing was stored" in err
    assert secrets_of(home).get("CRM") is None


def test_a_login_at_a_host_that_is_not_allowed_is_refused_before_it_starts(home, log_in):
    run = log_in(token_url="https://elsewhere.example/token")
    code, _, err = run.end()
    assert code != 0
    assert "elsewhere.example is not among the allowed hosts" in err
    assert run.address == ""


def test_a_login_that_no_tool_or_two_declare_differently_is_refused(home, site, cli, declare):
    assert "no tool declares a login CRM" in cli("secret", "login", "CRM").err
    declare()
    assert "no tool declares a login OTHER; the logins are CRM" in cli("secret", "login", "OTHER").err
    script(home, site.url("/api"), login_auth(site, client_id="another"))
    assert "declare the login CRM differently" in cli("secret", "login", "CRM").err


def test_the_examples_of_the_page_load_and_ask_for_what_they_need(tmp_path, monkeypatch, cli):
    shutil.copytree(ROOT / "examples" / "auth", tmp_path / "auth", ignore=shutil.ignore_patterns(".toolcrib"))
    monkeypatch.chdir(tmp_path / "auth")
    assert cli("bundle", "load", ".").code == 0
    ended = cli("check")
    assert ended.code == 1, ended.out
    assert "log in with: crib secret login CRM" in ended.out
    assert "run: crib secret set SHOP_TOKEN" in ended.out
