"""`crib secret` and `crib token`: manage secrets, which are never printed, and access tokens of the server."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import click

from toolcrib.features.access.login import find_login, log_in
from toolcrib.features.access.stored_secrets import SecretsCrib, remove_secret, store_secret
from toolcrib.features.access.view import make_view
from toolcrib.infra.egress.added_hosts import AddedHosts
from toolcrib.infra.plain_code import run_async
from toolcrib.infra.secrets.lookup import IN_PROJECT
from toolcrib.infra.secrets.secret import MAX_BYTES
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind
from toolcrib.model.limits import PERIODS, UNITS, read_quota
from toolcrib.model.tool import MODES
from toolcrib.toolkit.cli import (
    Answer,
    CommandError,
    ExitCode,
    WrongUseError,
    complain,
    is_terminal,
    require_project,
    say,
    say_json,
)
from toolcrib.toolkit.cli.console_tables import say_table
from toolcrib.toolkit.cli.group import answers, example, json_option, pass_opener, project_option
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.features.access.tokens import Token, Tokens
    from toolcrib.model.limits import Quota, Usage
    from toolcrib.toolkit.cli.group import Opener

SCOPES = tuple(map(str, Scope))
DAY_SECONDS = 86_400
MAX_DAYS = 3_650
LOGIN_SECONDS, MAX_LOGIN_SECONDS = 300, 3_600


class AccessCrib(ProjectCrib, SecretsCrib, Protocol):
    """What these commands use of a crib."""

    @property
    def audit(self) -> Any:
        """The audit trail."""

    @property
    def tokens(self) -> Tokens:
        """The access tokens of the project's server."""

    def usages(self) -> Sequence[Usage]:
        """The current usage of the rate limits of tools and the quotas of tokens."""


@click.group("secret", epilog=example("crib secret set WEATHER_KEY"))
def secret() -> None:
    """Store secrets for HTTP tools."""


@secret.command("set", epilog=example("crib secret set WEATHER_KEY"))
@click.argument("name")
@click.argument("more", nargs=-1, metavar="", type=click.UNPROCESSED)
@project_option
@answers("name", "from")
@pass_opener
def secret_set(opener: Opener[AccessCrib], name: str, more: tuple[str, ...]) -> Answer:
    """Store a secret in the project, encrypted.

    The value is typed at a prompt, or read from standard input, without its last line break.
    """
    # The message quotes neither, because it may be the secret.
    if more or "=" in name:
        message = "a secret on the command line can be seen by others; change it, and give only its name"
        raise WrongUseError(f"{message}: it is asked for, or comes from standard input")
    with opener.open_local() as crib:
        require_project(crib.settings)
        value = _read_secret(name)
        store_secret(crib, name, value)
        place = crib.secrets.places()[name]
    say(f"stored {name}")
    if place != IN_PROJECT:
        complain(f"{name} is in {place} too, and that one counts")
    return Answer({"name": name, "from": place})


@secret.command("login", epilog=example("crib secret login CRM"))
@click.argument("name")
@click.option(
    "--timeout",
    "seconds",
    type=click.IntRange(1, MAX_LOGIN_SECONDS),
    default=LOGIN_SECONDS,
    show_default=True,
    help="How many seconds the login may take.",
)
@project_option
@answers("name", "from", "tools")
@pass_opener
def secret_login(opener: Opener[AccessCrib], name: str, *, seconds: int) -> Answer:
    """Log in for the HTTP tools that declare this login, and store its tokens, encrypted.

    Prints an address for the browser and listens on this machine for its answer. Where the browser runs on another machine, paste
    the address that it ends at.
    """
    with opener.open_local() as crib:
        require_project(crib.settings)
        declared = find_login(crib.tools, name)
        hosts = declared.allowed_hosts(
            (*crib.settings["http_tools"].hosts, *map(str, AddedHosts(crib.settings.data)()))
        )
        tokens = run_async(log_in(declared, crib.secrets, crib.access_tokens, hosts=hosts, seconds=seconds))
        store_secret(crib, name, tokens.to_text())
        place = crib.secrets.places()[name]
    tools = [tool.name for tool in declared.tools]
    say(f"stored {name} for {', '.join(tools)}")
    if place != IN_PROJECT:
        complain(f"{name} is in {place} too, and that one counts")
    return Answer({"name": name, "from": place, "tools": tools})


@secret.command("list", epilog=example("crib secret list"))
@project_option
@json_option
@pass_opener
def secret_list(opener: Opener[AccessCrib], *, as_json: bool) -> int:
    """List the names of the secrets, and where each comes from.

    Secrets in a keyring are not listed, because a keyring cannot list its names.
    """
    with opener.open_local() as crib:
        places = sorted(crib.secrets.places().items())
    if as_json:
        say_json([{"name": name, "from": place} for name, place in places])
    elif places:
        say_table(("secret", "from"), places)
    else:
        say("there are no secrets; store one with: crib secret set NAME")
    return ExitCode.DONE


@secret.command("remove", epilog=example("crib secret remove WEATHER_KEY"))
@click.argument("name")
@project_option
@answers("name", "stillIn")
@pass_opener
def secret_remove(opener: Opener[AccessCrib], name: str) -> Answer:
    """Remove a secret of the project."""
    with opener.open_local() as crib:
        require_project(crib.settings)
        removed = remove_secret(crib, name)
        place = crib.secrets.places().get(name)
    if not removed:
        where = f"{name} is only in {place}; remove it there" if place is not None else ""
        raise CommandError(Kind.NOT_FOUND, where or f"there is no secret {name}; see: crib secret list")
    say(f"removed {name}")
    if place is not None:
        complain(f"{name} is still in {place}; remove it there")
    return Answer({"name": name, "stillIn": place})


@click.group("token", epilog=example("crib token create ci --scope invoke"))
def token() -> None:
    """Manage access tokens of the server."""


@token.command("create", epilog=example("crib token create ci --scope invoke --days 30"))
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="A scope of the token; repeatable.",
)
@click.option(
    "--days", type=click.IntRange(1, MAX_DAYS), help="How long it is valid; without this, until it is revoked."
)
@click.option("--tools", help="Only these tools, with commas between them: name, bundle/name, bundle/*.")
@click.option("--bundles", help="Only tools of these bundles.")
@click.option("--tags", help="Only tools with one of these tags.")
@click.option("--mode", type=click.Choice(sorted(MODES)), help="Only tools of this mode; its calls are made in it.")
@click.option(
    "--quota",
    "quotas",
    multiple=True,
    metavar="UNIT=N",
    help=f"How much it may use of {', '.join(UNITS)}; repeatable, such as calls=1000.",
)
@click.option(
    "--per", type=click.Choice(tuple(PERIODS)), default="day", show_default=True, help="The period of the quota."
)
@click.option("--currency", default="USD", show_default=True, help="The currency of a quota of money.")
@project_option
@json_option
@pass_opener
def token_create(
    opener: Opener[AccessCrib],
    name: str,
    scopes: tuple[str, ...],
    *,
    days: int | None,
    tools: str | None,
    bundles: str | None,
    tags: str | None,
    mode: str | None,
    quotas: tuple[str, ...],
    per: str,
    currency: str,
    as_json: bool,
) -> int:
    """Create a token and print it, once.

    NAME names its holder: a token cannot approve calls of another token with the same name. Only a hash of the token is
    stored, so it cannot be printed again. Each limit restricts what the token sees, in every interface. A quota limits what its
    calls use within any minute, hour, day or month (30 days), by all processes together; see crib stats.
    """
    view = make_view(
        tools=_words("--tools", tools), bundles=_words("--bundles", bundles), tags=_words("--tags", tags), mode=mode
    )
    quota = _quota(quotas, per, currency)
    with opener.open_local() as crib:
        require_project(crib.settings)
        seconds = None if days is None else days * DAY_SECONDS
        made, text = crib.tokens.create(name, scopes, seconds=seconds, view=view, quota=quota)
        if view is not None and not any(view.shows(tool) for tool in crib.tools):
            complain("the token sees no tool that is there now; see their names with: crib list")
    if as_json:
        say_json({**_to_json(made), "token": text})
        return ExitCode.DONE
    say(text)
    complain(f"this token is shown only now; revoke it with: crib token revoke {made.id}")
    return ExitCode.DONE


@token.command("list", epilog=example("crib token list"))
@project_option
@json_option
@pass_opener
def token_list(opener: Opener[AccessCrib], *, as_json: bool) -> int:
    """List the tokens, also those that have expired."""
    with opener.open_local() as crib:
        found = crib.tokens.list()
    if as_json:
        say_json([_to_json(one) for one in found])
    elif found:
        say_table(("id", "name", "scopes", "limits", "created", "expires"), [_row(one) for one in found])
    else:
        say("there are no tokens; make one with: crib token create NAME --scope read")
    return ExitCode.DONE


@token.command("revoke", epilog=example("crib token revoke ci"))
@click.argument("token_id", metavar="ID")
@project_option
@answers("id", "name")
@pass_opener
def token_revoke(opener: Opener[AccessCrib], token_id: str) -> Answer:
    """Revoke a token."""
    with opener.open_local() as crib:
        holder = crib.tokens.holder(token_id)
        revoked = crib.tokens.revoke(token_id)
    if not revoked:
        # The message does not quote it, because it may be the token itself, typed by mistake.
        raise CommandError(Kind.NOT_FOUND, "there is no token by this id; see: crib token list")
    say(f"revoked {token_id}")
    return Answer({"id": token_id, "name": holder})


def _read_secret(name: str) -> str:
    if is_terminal(sys.stdin):
        return str(click.prompt(f"Value of {name}", hide_input=True, err=True))
    if sys.stdin is None:
        raise WrongUseError(f"there is nothing to read {name} from; write it to standard input")
    # One byte over the limit, so that a longer secret is noticed, and the line break at the end.
    data = sys.stdin.buffer.read(MAX_BYTES + len("\r\n") + 1)
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise WrongUseError(f"{name} is not UTF-8; write it as text, such as base64") from None


def _row(one: Token) -> tuple[str, ...]:
    expires = "never" if one.expires_at is None else _spell(one.expires_at)
    return one.id, one.name, ", ".join(sorted(one.scopes)), _limits(one), _spell(one.created_at), expires


def _limits(one: Token) -> str:
    limits = {} if one.view is None else one.view.to_json()
    shown = (f"{kind}: {', '.join(words) if isinstance(words, list) else words}" for kind, words in limits.items())
    quota = () if one.quota is None else (f"{unit}: {value}" for unit, value in one.quota.to_json().items())
    return "; ".join((*shown, *quota)) or "none"


def _quota(words: tuple[str, ...], per: str, currency: str) -> Quota | None:
    """The quota that `--quota UNIT=N`, `--per` and `--currency` describe."""
    found: dict[str, object] = {}
    for word in words:
        unit, _, number = word.partition("=")
        if unit not in UNITS or unit in found:
            raise WrongUseError(f"--quota {word!r:.80}: write each of {', '.join(UNITS)} once, such as calls=1000")
        try:
            found[unit] = int(number) if unit in ("calls", "bytes") else float(number)
        except ValueError:
            raise WrongUseError(f"--quota {word!r:.80}: write a number, such as {unit}=1000") from None
    return read_quota({**found, "per": per, "currency": currency}) if found else None


def _words(option: str, text: str | None) -> list[str] | None:
    words = None if text is None else [word.strip() for word in text.split(",") if word.strip()]
    if words is not None and not words:
        # An unset shell variable must create neither a token without limits nor one that sees no tool.
        raise WrongUseError(f"{option} names nothing; write what the token sees, or leave the option out")
    return words


def _to_json(one: Token) -> dict[str, object]:
    expires = None if one.expires_at is None else _spell(one.expires_at)
    facts: dict[str, object] = {
        "id": one.id,
        "name": one.name,
        "scopes": sorted(one.scopes),
    }
    facts["limits"] = None if one.view is None else one.view.to_json()
    facts["quota"] = None if one.quota is None else one.quota.to_json()
    return {**facts, "createdAt": _spell(one.created_at), "expiresAt": expires}


def _spell(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
