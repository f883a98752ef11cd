"""`crib approvals`: list, show, approve and refuse calls that wait for a person."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from toolcrib.model.approval import State
from toolcrib.toolkit.cli import ExitCode, indented, say, say_json, visible
from toolcrib.toolkit.cli.console_tables import say_facts, say_table
from toolcrib.toolkit.cli.group import example, json_option, pass_opener, project_option, url_option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolcrib.model.approval import Approval
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import ProjectCrib

COLUMNS = ("id", "state", "tool", "caller", "expires", "reason")
AUTHOR = "The author of the tool says:"
id_argument = click.argument("approval_id", metavar="ID")
note_option = click.option("--note", default="", help="Why; it is stored with the decision.")


@click.group("approvals", epilog=example("crib approvals list"))
def approvals() -> None:
    """Approve or refuse calls that wait for a person."""


@approvals.command("list", epilog=example("crib approvals list --all"))
@click.option("--all", "everything", is_flag=True, help="Also those that are decided, used or expired.")
@project_option
@url_option
@json_option
@pass_opener
def approvals_list(opener: Opener[ProjectCrib], *, url: str | None, everything: bool, as_json: bool) -> int:
    """List the calls that wait for approval, the oldest first."""
    with opener.open_durable(url) as crib:
        found = crib.approvals.list(None if everything else State.PENDING)
    if as_json:
        say_json([approval.to_json() for approval in found])
    elif found:
        say_table(COLUMNS, [_row(approval) for approval in found])
    else:
        say("no call waits for approval")
    return ExitCode.DONE


@approvals.command("show", epilog=example("crib approvals show 3f9c1d7e5a2b48c6901f7d3e8b5c2a64"))
@id_argument
@project_option
@url_option
@json_option
@pass_opener
def approvals_show(opener: Opener[ProjectCrib], approval_id: str, *, url: str | None, as_json: bool) -> int:
    """Show exactly what would run: tool, arguments, caller, and the code, requests or statements themselves."""
    with opener.open_durable(url) as crib:
        return _show(crib.approvals.show(approval_id), as_json=as_json)


@approvals.command(
    "approve", epilog=example("crib approvals approve 3f9c1d7e5a2b48c6901f7d3e8b5c2a64 --note 'checked the address'")
)
@id_argument
@note_option
@project_option
@url_option
@json_option
@pass_opener
def approvals_approve(
    opener: Opener[ProjectCrib], approval_id: str, *, note: str, url: str | None, as_json: bool
) -> int:
    """Let a call run once; it runs when its caller makes it again."""
    with opener.open_durable(url) as crib:
        return _print_decision(crib.approvals.approve(approval_id, note=note), as_json=as_json)


@approvals.command(
    "refuse", epilog=example("crib approvals refuse 3f9c1d7e5a2b48c6901f7d3e8b5c2a64 --note 'wrong customer'")
)
@id_argument
@note_option
@project_option
@url_option
@json_option
@pass_opener
def approvals_refuse(
    opener: Opener[ProjectCrib], approval_id: str, *, note: str, url: str | None, as_json: bool
) -> int:
    """Refuse a call; the same call is refused until the approval expires."""
    with opener.open_durable(url) as crib:
        return _print_decision(crib.approvals.refuse(approval_id, note=note), as_json=as_json)


def _print_decision(approval: Approval, *, as_json: bool) -> int:
    if as_json:
        say_json(approval.to_json())
    else:
        say(f"{approval.state} {approval.tool} for {approval.caller}")
    return ExitCode.DONE


def _show(approval: Approval, *, as_json: bool) -> int:
    facts = approval.to_json()
    if as_json:
        say_json(facts)
        return ExitCode.DONE
    about, texts = approval.about, approval.about.get("arguments", {})
    say(_escape(about.get("title") or approval.tool))
    if text := about.get("description"):
        say(indented(f"{AUTHOR} {visible(text)}"))
    for name in sorted(approval.arguments, key=[*texts, *approval.arguments].index):
        say(f"\n{_escape(name)}: {_escape(json.dumps(approval.arguments[name], ensure_ascii=False))}")
        if text := texts.get(name):
            say(indented(f"{AUTHOR} {visible(text)}"))
    say("")
    caller, asker = approval.caller, about.get("asker")
    say_facts(
        (
            ("asked by", f"{asker} ({caller})" if asker else caller),
            ("since", str(facts["createdAt"])),
            ("why", approval.reason),
            ("may change", about.get("sideEffects", "")),
        )
    )
    if approval.state is State.PENDING:
        say(f"\napprove it: crib approvals approve {approval.id}\nrefuse it: crib approvals refuse {approval.id}")
    say("")
    rest = (
        "id",
        "state",
        "tool",
        "version",
        "rule",
        "expiresAt",
        "decidedBy",
        "decidedAt",
        "note",
        "contentHash",
        "digest",
    )
    say_facts((name, str(facts[name] or "")) for name in rest)
    for part in approval.runs or ():
        show_part(part)
    return ExitCode.DONE


def show_part(part: Mapping[str, Any]) -> None:
    """Print one part of what would run; invisible characters are escaped."""
    exact = "" if part["exact"] else " (a template)"
    say(f"\n{part['kind']}: {_escape(part['title'])}{exact}")
    for fact in part["facts"]:
        say(f"{_escape(fact['name'])}: {_escape(fact['value'])}")
    if part["note"]:
        say(visible(part["note"]))
    if part["text"] is not None:
        say(indented(visible(part["text"])))
    if part["bytes"] is not None:
        left = part["bytes"] - part["shownBytes"]
        rest = f"; {left} of them are not shown" if left else ""
        say(f"{part['bytes']} bytes{rest}, SHA-256 {part['sha256']}")


def _escape(text: str) -> str:
    """The text on one line, with blanks kept and line breaks escaped: they are part of what runs."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _row(approval: Approval) -> tuple[str, ...]:
    expires = datetime.fromtimestamp(approval.expires_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return approval.id, str(approval.state), approval.tool, approval.caller, expires, approval.reason
