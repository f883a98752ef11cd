"""Fill the slots of a request: in its URL, and from answers of earlier requests, arguments, names of the platform, secrets.

Slots are written `${city}`, `${user.name}`, `${items[0].id}`. A `$` that no `{` follows and braces by themselves are
literal. Before a `{`, two `$` are a literal one: `$${city}` is the text `${city}`, and `$$${price}` is a `$` with the
price behind it. Scheme, host and port are as the author wrote them, without slots.
"""

from __future__ import annotations

import re
import string
import time
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, unquote

from toolcrib.lib.http_syntax import MAX_URL, Url, parse_url
from toolcrib.lib.templates import ABSENT, as_url_part
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from toolcrib.infra.secrets.secret import Secret, VariableMasking
    from toolcrib.model.tool import Http, Tool

    # What stands in a slot; ABSENT for what may be left out and was. Raises ToolError for an unknown name.
    Lookup = Callable[["Slot"], object]
    Place = Callable[[object], str]

SHOWN = 40
Pieces = tuple["str | Slot", ...]
Fills = tuple["str | Fill", ...]
STAND_IN = "-"
PLATFORM = frozenset(
    {"request_id", "version", "tool_version", "slug", "tool_id", "bundle_id", "client_id", "now"},
)

_OPENING = re.compile(r"(\$+)\{")
_NAME = r"[^\W\d][\w-]*"
_INSIDE = re.compile(rf"({_NAME})((?:\.{_NAME}|\[\d{{1,9}}\])*)\}}")
_STEP = re.compile(rf"\.({_NAME})|\[(\d+)\]")
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
# Scheme, host and port written out by the author, and closed by what follows them.
_AUTHORITY = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_PARTS = re.compile(r"[/\\]")
_DOTS = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class Slot:
    """A value by its name, and the way into it: names of members and numbers of items."""

    name: str
    steps: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return f"${{{self.name}{''.join(steps)}}}"

    def reach(self, value: object) -> object:
        """What lies at the end of the way, or ABSENT."""
        for step in self.steps:
            if isinstance(step, str):
                value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
            else:
                value = value[step] if isinstance(value, list) and step < len(value) else ABSENT
        return value


@dataclass(frozen=True, slots=True)
class Fill:
    """A slot together with how a value is written where it stands."""

    slot: Slot
    place: Place

    def write(self, lookup: Lookup) -> str:
        """What stands in the slot, as it is written there; refuses what was left out."""
        value = lookup(self.slot)
        if value is ABSENT:
            name = self.slot.name
            cure = f"give {name} with what is asked for in it" if self.slot.steps else f"give {name}"
            raise ToolError(Kind.VALIDATION, f"{self.slot} has no value; {cure}")
        return self.place(value)


def read_slots(text: str) -> Pieces:
    """The literal parts of a text and its slots, in their order; neighbouring literals are one."""
    pieces: list[str | Slot] = []
    literal, end = "", 0
    for opening in _OPENING.finditer(text):
        dollars = len(opening[1])
        literal += text[end : opening.start()] + "$" * (dollars // 2)
        end = opening.end()
        if dollars % 2 == 0:
            literal += "{"
            continue
        inside = _INSIDE.match(text, end)
        if inside is None:
            raise _no_slot(text[end - 2 :])
        pieces += [literal] if literal else []
        pieces.append(Slot(inside[1], tuple(step[1] or int(step[2]) for step in _STEP.finditer(inside[2]))))
        literal, end = "", inside.end()
    literal += text[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def put_in_place(pieces: Pieces, place: Place) -> Fills:
    """The pieces with every slot in the same kind of place."""
    return tuple(piece if isinstance(piece, str) else Fill(piece, place) for piece in pieces)


def slots_in(pieces: Iterable[str | Slot]) -> tuple[Slot, ...]:
    """The slots among the pieces."""
    return tuple(piece for piece in pieces if not isinstance(piece, str))


def write(fills: Fills, lookup: Lookup) -> str:
    """The text with every slot filled."""
    return "".join([piece if isinstance(piece, str) else piece.write(lookup) for piece in fills])


def write_if_given(fills: Fills, lookup: Lookup) -> str:
    """The text, or an empty one if what one of its slots asks for was left out."""
    written: list[str] = []
    for piece in fills:
        if isinstance(piece, str):
            written.append(piece)
            continue
        value = lookup(piece.slot)
        if value is ABSENT or value is None:
            return ""
        written.append(piece.place(value))
    return "".join(written)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the path, between two slashes, with a slot in it."""

    fills: Fills

    def write(self, lookup: Lookup) -> str:
        """The part with every slot filled; refuses a value that would lead to another place than its author meant."""
        written = write(self.fills, lookup)
        meant = unquote(written) if "%" in written else written
        # Some servers read an encoded slash like a plain one, so the dots behind it count as well.
        if not meant or not _DOTS.isdisjoint(_PARTS.split(meant)):
            message = 'url: a value leaves a part of the path empty, "." or ".."; give another value'
            raise ToolError(Kind.VALIDATION, message)
        return written


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a request goes.

    `base` is the URL with something in place of the slots, or the URL itself where there are none. `pieces` are path and
    query, `joint` is what `fields` follow: named values, each left out while it is empty.
    """

    base: Url
    pieces: tuple[str | Fill | Segment, ...]
    joint: str
    fields: tuple[tuple[str, Fills], ...]
    slots: tuple[Slot, ...]

    def write(self, lookup: Lookup) -> Url:
        """The URL with every slot filled; no value changes how many parts the path has, or what the query's names are."""
        base = self.base
        if not self.slots:
            return base
        target = "".join([piece if isinstance(piece, str) else piece.write(lookup) for piece in self.pieces])
        if self.fields:
            given = [name + value for name, fills in self.fields if (value := write_if_given(fills, lookup))]
            target += self.joint + "&".join(given) if given else ""
        if len(target) > MAX_URL:
            raise ToolError(Kind.VALIDATION, f"url: longer than {MAX_URL} characters once it is filled; give less")
        return Url(scheme=base.scheme, host=base.host, port=base.port, target=target)


def compile_address(url: str, fields: Mapping[str, str]) -> Address:
    """Read the slots of a URL and of the values that are added to its query."""
    pieces = _without_fragment(read_slots(url))
    base = _check_grammar(pieces)
    path, query = _split(pieces)
    read = {name: read_slots(value) for name, value in fields.items()}
    slots = (*slots_in(pieces), *(slot for value in read.values() for slot in slots_in(value)))
    added = tuple((f"{as_url_part(name)}=", _field(value)) for name, value in read.items() if value)
    joint = "" if base.target.endswith(("?", "&")) else "&" if "?" in base.target else "?"
    if not slots and added:
        target = base.target + joint + "&".join(name + "".join(map(str, value)) for name, value in added)
        base = Url(scheme=base.scheme, host=base.host, port=base.port, target=target)
    return Address(
        base=base,
        pieces=(*_path(path), *put_in_place(_encoded(query), as_url_part)),
        joint=joint,
        fields=added,
        slots=slots,
    )


class _Unknown(str):
    """The only one of its kind; no answer is the same object."""

    __slots__ = ()


# In place of an answer that is not there yet, while a call is only asked about.
UNKNOWN: Final = _Unknown("-")


class SecretSource(Protocol):
    """Looks secrets up by name."""

    def get(self, name: str) -> Secret | None:
        """The secret, or None."""

    def names(self) -> Collection[str]:
        """The names that are known."""


class Names:
    """What the slots of a tool mean, as far as it is known before a call.

    `known` are the names of the platform that mean the same at each call.
    """

    def __init__(self, tool: Tool, http: Http, *, secrets: SecretSource, version: str) -> None:
        properties = tool.parameters.get("properties")
        self.declared: frozenset[str] = frozenset(properties) if isinstance(properties, dict) else frozenset()
        self.secrets = secrets
        known = {
            "version": version,
            "tool_version": tool.version,
            "slug": tool.slug,
            "tool_id": tool.id or tool.name,
            "bundle_id": http.bundle or tool.bundle,
        }
        taken = self.declared.union(call.name for call in http.calls)
        self.known: dict[str, object] = {name: value for name, value in known.items() if name not in taken}

    def may_be_secret(self, slots: Iterable[Slot]) -> frozenset[str]:
        """The names that only the operator, or a server, gives a value to."""
        return frozenset(slot.name for slot in slots) - self.declared - PLATFORM

    def refuse_secrets(self, parameters: Iterable[str]) -> None:
        """Refuse parameters that have the name of a secret: it would be unclear which of the two is meant.

        Asked at each call, because the secret may have come after the tool.
        """
        for name in parameters:
            if self.secrets.get(name) is not None:
                cure = "rename the parameter, or remove the secret"
                raise ToolError(Kind.VALIDATION, f"{name} is a parameter and the name of a secret; {cure}")


class Values:
    """What one call gives the slots; every secret that it hands out is hidden by `masking` from then on."""

    def __init__(
        self, names: Names, arguments: Mapping[str, object], *, call_id: str, caller: str, masking: VariableMasking
    ) -> None:
        self._names = names
        self._arguments = arguments
        self._call_id = call_id
        self._caller = caller
        self._masking = masking
        self._answers: dict[str, object] = {}

    def keep(self, name: str, answer: object) -> None:
        """Let later requests speak of an answer."""
        if name:
            self._answers[name] = answer

    def __call__(self, slot: Slot) -> object:
        """What the slot stands for, or ABSENT."""
        name = slot.name
        if name in self._answers:
            answer = self._answers[name]
            return answer if answer is UNKNOWN else slot.reach(answer)
        if name in self._names.declared:
            return slot.reach(self._arguments.get(name, ABSENT))
        if name in PLATFORM:
            return slot.reach(self._platform(name))
        return slot.reach(self._further(slot))

    def _platform(self, name: str) -> object:
        if name == "request_id":
            # A call that is only asked about has no id yet.
            return self._call_id or "0"
        if name == "client_id":
            return self._caller
        if name == "now":
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return self._names.known[name]

    def _further(self, slot: Slot) -> object:
        secret = self._names.secrets.get(slot.name)
        if secret is not None:
            value = secret.reveal()
            self._masking.add(value)
            return value
        if slot.name in self._arguments:
            return self._arguments[slot.name]
        cure = f"declare the parameter {slot.name}, or let the operator set a secret of that name"
        message = f"{slot} is neither a parameter, a name of the platform nor a secret; {cure}"
        raise ToolError(Kind.VALIDATION, message, details={"name": slot.name})


def _no_slot(text: str) -> ToolError:
    cure = "write ${name}, ${name.member} or ${name[0]}, or $${ for the text itself"
    return ToolError(Kind.VALIDATION, f"{text[:SHOWN]!r} opens no slot; {cure}")


def _check_grammar(pieces: Pieces) -> Url:
    """The URL with a stand-in for every slot; refuses one whose scheme, host or port is not written out."""
    head = pieces[0] if pieces and isinstance(pieces[0], str) else ""
    if _SCHEME.match(head) is None:
        raise ToolError(Kind.VALIDATION, "must begin with http:// or https://, written out")
    authority = _AUTHORITY.match(head)
    if authority is None or (authority.end() == len(head) and len(pieces) > 1):
        raise ToolError(Kind.VALIDATION, "scheme, host and port take no slots; write them out")
    return parse_url("".join(piece if isinstance(piece, str) else STAND_IN for piece in pieces))


def _without_fragment(pieces: Pieces) -> Pieces:
    """The pieces before a `#`, which is never sent."""
    for index, piece in enumerate(pieces):
        if not isinstance(piece, str) or "#" not in piece:
            continue
        if slots_in(pieces[index:]):
            raise ToolError(Kind.VALIDATION, "what stands behind # is never sent, so it takes no slots; remove it")
        return (*pieces[:index], piece.partition("#")[0])
    return pieces


def _split(pieces: Pieces) -> tuple[Pieces, Pieces]:
    """Path and query, the path without scheme, host and port, the query with its question mark."""
    head = str(pieces[0])
    authority = _AUTHORITY.match(head)
    rest = (head[authority.end() if authority else 0 :], *pieces[1:])
    for index, piece in enumerate(rest):
        if isinstance(piece, str) and "?" in piece:
            before, mark, after = piece.partition("?")
            return (*rest[:index], before), (mark + after, *rest[index + 1 :])
    return rest, ()


def _path(pieces: Pieces) -> tuple[str | Segment, ...]:
    """The path: its slashes and the parts without slots as one text each, and every part that has one."""
    parts: list[str | Slot] = []
    for piece in _encoded(pieces):
        parts += re.split(r"(/)", piece) if isinstance(piece, str) else [piece]
    path: list[str | Segment] = [] if parts[0] == "" and len(parts) > 1 else ["/"]
    for is_slash, group in groupby(parts, lambda part: part == "/"):
        segment = tuple(group)
        path.append(
            Segment(put_in_place(segment, as_url_part))
            if not is_slash and slots_in(segment)
            else "".join(map(str, segment))
        )
    return tuple(part for part in path if part)


def _encoded(pieces: Pieces) -> Pieces:
    """The literals as they go on the wire: characters beyond ASCII encoded, everything else as written."""
    return tuple(quote(piece, safe=string.punctuation) if isinstance(piece, str) else piece for piece in pieces)


def _field(value: Pieces) -> Fills:
    return tuple(as_url_part(piece) if isinstance(piece, str) else Fill(piece, as_url_part) for piece in value)
