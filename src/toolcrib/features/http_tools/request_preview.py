"""Show the requests of a call before it runs: filled with its arguments, and with a name in place of each secret.

What is only known later stands in braces: `{secret:NAME}`, `{env:NAME}`, `{now}`, `{order.id}` for the answer of an earlier request.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlsplit

from toolcrib.features.http_tools.slot_values import PLATFORM
from toolcrib.features.http_tools.slots import SlotSource
from toolcrib.lib.http_auth import REFERENCE
from toolcrib.lib.redaction import HIDDEN, hide_secrets, is_secret
from toolcrib.lib.run_part import KNOWN_LATER, PartKind, RunPart
from toolcrib.lib.templates import ABSENT
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.features.http_tools.request_step import RequestStep
    from toolcrib.features.http_tools.slot_values import Names, Values
    from toolcrib.features.http_tools.slots import Slot
    from toolcrib.model.tool import HttpCall

# A shorter text stands in a request for other reasons too.
SHORTEST_LITERAL = 4
WITH_ANSWERS = "A template: what stands in braces comes from the answers of earlier requests."
NOT_FILLED = "As its author wrote it; it cannot be filled in beforehand"
PAGES = "It is repeated for each further page of the answer."

_SLOT = re.compile(r"\{\w")


class StandIns:
    """Gives the slots of a call their values; those that must not or cannot be shown get a name instead.

    While a request is written, a marker of letters and digits stands for the name: it is the same in a URL, in JSON and in XML.
    """

    def __init__(self, names: Names, values: Values) -> None:
        self.waits_for_answer = False
        self._names = names
        self._values = values
        self._answers: set[str] = set()
        self._marker = f"standin{secrets.token_hex(8)}n"
        self._shown: list[str] = []

    def begin(self) -> None:
        """Start with another request."""
        self.waits_for_answer = False

    def keep(self, name: str) -> None:
        """Show the answer of this request by its name in later requests."""
        if name:
            self._answers.add(name)

    def __call__(self, slot: Slot) -> object:
        """The value of the slot, or the marker of its name; raises ToolError as the call itself would."""
        name, source = slot.name, slot.source
        if source is SlotSource.ANSWER or (source is SlotSource.ANY and name in self._answers):
            self.waits_for_answer = True
            return self._mark(str(slot).removeprefix("$").strip("{}").removeprefix("answer:"))
        value = self._values(slot)
        shown = self._name_of(slot)
        return value if value is ABSENT or not shown else self._mark(shown)

    def resolve(self, text: str) -> str:
        """The text with names in braces in place of the markers."""
        for number, shown in reversed([*enumerate(self._shown)]):
            text = text.replace(f"{self._marker}{number}x", f"{{{shown}}}")
        return text

    def holds_marker(self, text: str) -> bool:
        """Whether a marker stands in the text."""
        return self._marker in text

    def _name_of(self, slot: Slot) -> str:
        name, source = slot.name, slot.source
        if source in {SlotSource.SECRET, SlotSource.VARIABLE}:
            return f"{source}:{name}"
        if source is SlotSource.GRANTED:
            return f"granted:{name}"
        if source is not SlotSource.PLATFORM and (source is SlotSource.ARGUMENT or name in self._names.declared):
            return ""
        if name in PLATFORM:
            return name if name in KNOWN_LATER else ""
        is_operators = source is SlotSource.ANY and self._names.secrets.get(name) is not None
        return f"secret:{name}" if is_operators else ""

    def _mark(self, shown: str) -> str:
        self._shown.append(shown)
        return f"{self._marker}{len(self._shown) - 1}x"


def preview_requests(steps: list[RequestStep], stand_ins: StandIns) -> Iterator[RunPart]:
    """Each request in its order: the first exactly, a later one as far as it does not depend on an answer."""
    for step in steps:
        stand_ins.begin()
        try:
            yield _filled(step, stand_ins)
        except ToolError as problem:
            if step is steps[0]:
                raise
            yield _as_written(step.call, problem)
        stand_ins.keep(step.call.name)


def _filled(step: RequestStep, stand_ins: StandIns) -> RunPart:
    written, literals = step.template.write(stand_ins), _secret_literals(step.call)

    def show(text: str) -> str:
        for literal in literals:
            text = text.replace(literal, HIDDEN)
        return stand_ins.resolve(text)

    headers = tuple(
        (f"header {name}", HIDDEN if is_secret(name) and not stand_ins.holds_marker(value) else show(value))
        for name, value in written.headers.items()
    )
    notes = [WITH_ANSWERS] if stand_ins.waits_for_answer else []
    return RunPart(
        kind=PartKind.REQUEST,
        title=f"{written.method} {show(str(written.url))}",
        data=None if written.body is None else _show_body(written.body, show),
        facts=(*headers, *_auth_facts(step.call.auth)),
        exact=not stand_ins.waits_for_answer,
        note=" ".join([*notes, *([PAGES] if step.call.pagination else [])]),
    )


def _show_body(body: bytes, show: Callable[[str], str]) -> bytes:
    try:
        return show(body.decode()).encode()
    except UnicodeDecodeError:
        return body


def _as_written(call: HttpCall, problem: ToolError) -> RunPart:
    headers = call.headers if not isinstance(call.headers, str) else {"all": call.headers}
    body = call.body if isinstance(call.body, str) else json.dumps(hide_secrets(call.body), ensure_ascii=False)
    shown = hide_secrets(dict(headers))
    return RunPart(
        kind=PartKind.REQUEST,
        title=f"{call.method} {call.url}",
        data=body.encode() if call.body else None,
        facts=(
            *((f"header {name}", str(value)) for name, value in (shown if isinstance(shown, dict) else {}).items()),
            *_auth_facts(call.auth),
        ),
        exact=False,
        note=f"{NOT_FILLED}: {problem.message}",
    )


def _auth_facts(auth: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """How the request is signed when it is sent; secrets stand there by name."""
    for name, value in auth.items():
        if isinstance(value, str) and REFERENCE.fullmatch(value):
            yield f"auth {name}", value.removeprefix("$")
        elif is_secret(name):
            yield f"auth {name}", HIDDEN
        else:
            shown = hide_secrets(value, name)
            yield f"auth {name}", shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _secret_literals(call: HttpCall) -> list[str]:
    """What the author wrote out under the name of a secret, as it stands in a URL, a header or a body."""
    found = {value for name, value in parse_qsl(urlsplit(call.url).query) if is_secret(name)}
    found |= {value for name, value in call.query.items() if is_secret(name)}
    found |= set(_literals_in(call.body))
    plain = [text for text in found if len(text) >= SHORTEST_LITERAL and not _SLOT.search(text)]
    return sorted({*plain, *(quote(text, safe="") for text in plain)}, key=len, reverse=True)


def _literals_in(body: object, name: str = "") -> Iterator[str]:
    if isinstance(body, str) and not name:
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return
    if isinstance(body, dict):
        for key, member in body.items():
            yield from _literals_in(member, str(key))
    elif isinstance(body, list):
        for item in body:
            yield from _literals_in(item, name or "item")
    elif isinstance(body, str) and is_secret(name):
        yield body
