"""The commands about secrets of HTTP tools; none of them ever prints one."""

from __future__ import annotations

import sys

import click

from toolcrib.faces.cli.codes import ExitCode, WrongUseError
from toolcrib.faces.cli.group import json_option, project_option
from toolcrib.faces.cli.opening import open_crib
from toolcrib.faces.cli.printing import complain, is_terminal, say, say_json, say_table
from toolcrib.faces.cli.projects import require_project


@click.group("secret")
def secret() -> None:
    """Keep secrets for HTTP tools."""


@secret.command("set")
@click.argument("name")
@click.argument("more", nargs=-1, metavar="", type=click.UNPROCESSED)
@project_option
@click.pass_obj
def secret_set(project: str | None, name: str, more: tuple[str, ...]) -> int:
    """Keep a secret in the project, encrypted.

    It is typed when asked for, or comes from standard input, whose last line break does not count.
    """
    from toolcrib.ground.secrets.secrets import IN_PROJECT

    # Neither is quoted: whatever stands there may be the secret.
    if more or "=" in name:
        message = "a secret on the command line can be seen by others; change it, and give only its name"
        raise WrongUseError(f"{message}: it is asked for, or comes from standard input")
    with open_crib(project) as crib:
        require_project(crib)
        crib.secrets.set(name, _read_secret(name))
        place = crib.secrets.places()[name]
    say(f"kept {name}")
    if place != IN_PROJECT:
        complain(f"{name} is in {place} too, and that one counts")
    return ExitCode.DONE


@secret.command("list")
@project_option
@json_option
@click.pass_obj
def secret_list(project: str | None, *, as_json: bool) -> int:
    """List the names of the secrets, and where each comes from.

    A keyring cannot be asked which names it knows; those are not listed.
    """
    with open_crib(project) as crib:
        places = sorted(crib.secrets.places().items())
    if as_json:
        say_json([{"name": name, "from": place} for name, place in places])
    elif places:
        say_table(("secret", "from"), places)
    else:
        say("there are no secrets; keep one with: crib secret set NAME")
    return ExitCode.DONE


@secret.command("remove")
@click.argument("name")
@project_option
@click.pass_obj
def secret_remove(project: str | None, name: str) -> int:
    """Forget a secret of the project."""
    with open_crib(project) as crib:
        require_project(crib)
        removed = crib.secrets.remove(name)
        place = crib.secrets.places().get(name)
    if removed:
        say(f"removed {name}")
    if place is not None:
        complain(f"{name} is {'still' if removed else 'only'} in {place}; remove it there")
    elif not removed:
        complain(f"there is no secret {name}; see: crib secret list")
    return ExitCode.DONE if removed else ExitCode.FAILED


def _read_secret(name: str) -> str:
    from toolcrib.ground.secrets.secret import MAX_BYTES

    if is_terminal(sys.stdin):
        return str(click.prompt(f"Value of {name}", hide_input=True, err=True))
    if sys.stdin is None:
        raise WrongUseError(f"there is nothing to read {name} from; write it to standard input")
    # One more than there may be, and the line break at the end.
    data = sys.stdin.buffer.read(MAX_BYTES + len("\r\n") + 1)
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise WrongUseError(f"{name} is not UTF-8; write it as text, such as base64") from None
