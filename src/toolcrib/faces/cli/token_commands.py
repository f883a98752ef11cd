"""The commands about tokens, with which others use the server of a project."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.group import json_option, project_option
from toolcrib.faces.cli.opening import open_crib
from toolcrib.faces.cli.printing import complain, say, say_json, say_table
from toolcrib.faces.cli.projects import require_project

if TYPE_CHECKING:
    from toolcrib.crib.tokens import Token

SCOPES = ("read", "invoke", "manage")
DAY_SECONDS = 86_400
MAX_DAYS = 3_650


@click.group("token")
def token() -> None:
    """Let others use the server."""


@token.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="What it is good for; repeatable.",
)
@click.option("--days", type=click.IntRange(1, MAX_DAYS), help="How long it holds; without this, until it is revoked.")
@project_option
@json_option
@click.pass_obj
def token_create(project: str | None, name: str, scopes: tuple[str, ...], *, days: int | None, as_json: bool) -> int:
    """Make a token and print it, once.

    NAME says who has it. Only a hash of the token is kept: nobody can print it again.
    """
    with open_crib(project) as crib:
        require_project(crib)
        made, text = crib.tokens.create(name, scopes, seconds=None if days is None else days * DAY_SECONDS)
    if as_json:
        say_json({**_to_json(made), "token": text})
        return ExitCode.DONE
    say(text)
    complain(f"this token is shown only now; take it back with: crib token revoke {made.id}")
    return ExitCode.DONE


@token.command("list")
@project_option
@json_option
@click.pass_obj
def token_list(project: str | None, *, as_json: bool) -> int:
    """List the tokens, also those that have expired."""
    with open_crib(project) as crib:
        found = crib.tokens.list()
    if as_json:
        say_json([_to_json(one) for one in found])
    elif found:
        say_table(("id", "name", "scopes", "created", "expires"), [_row(one) for one in found])
    else:
        say("there are no tokens; make one with: crib token create NAME --scope read")
    return ExitCode.DONE


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@project_option
@click.pass_obj
def token_revoke(project: str | None, token_id: str) -> int:
    """Take a token back; from now on it is good for nothing."""
    with open_crib(project) as crib:
        revoked = crib.tokens.revoke(token_id)
    if not revoked:
        # Not quoted: whoever mixes the two up has written the token itself.
        complain("there is no token by this id; see: crib token list")
        return ExitCode.FAILED
    say(f"revoked {token_id}")
    return ExitCode.DONE


def _row(one: Token) -> tuple[str, ...]:
    expires = "never" if one.expires_at is None else _spell(one.expires_at)
    return one.id, one.name, ", ".join(sorted(one.scopes)), _spell(one.created_at), expires


def _to_json(one: Token) -> dict[str, object]:
    expires = None if one.expires_at is None else _spell(one.expires_at)
    facts = {"id": one.id, "name": one.name, "scopes": sorted(one.scopes)}
    return {**facts, "createdAt": _spell(one.created_at), "expiresAt": expires}


def _spell(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
