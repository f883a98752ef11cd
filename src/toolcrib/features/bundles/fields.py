"""Read a document key by key, and its `impl`: a registered function or HTTP requests.

Problems are collected with their places and raised together; a refused value is read as its default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from toolcrib.features.http_tools.request_template import check_http
from toolcrib.lib.documents import check_plain
from toolcrib.lib.names import near_misses
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import (
    MAX_ATTEMPTS,
    MAX_NAME,
    RETRY_KEYS,
    Backoff,
    Encoding,
    ErrorMode,
    Http,
    HttpCall,
    Registered,
    RetryPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from toolcrib.lib.positions import Steps

Word = TypeVar("Word", bound="StrEnum")

SHOWN = 80
MAX_TOLD = 100
MAX_STRANGERS = 20
MAX_ITEMS = 100
MAX_CALLS = 16
MAX_TIMEOUT_MS = 3_600_000
TIMEOUT_MS = 10_000
MAX_DELAY_SECONDS = 3_600
MAX_MULTIPLIER = 100
STATUSES = range(100, 600)
GO_KEYS = ("goFunc",)
REQUEST_KEYS = (
    *("method", "urlTemplate", "query", "headers", "bodyTemplate", "successCodes", "timeoutMs"),
    *("responseEncoding", "extractExpr", "errorMode", "retry"),
)
CALL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Places in the messages of `check_http`, and the keys of the document for them.
PLACE = re.compile(r"(?:calls\[(\d+)\]\.)?(?:(url|body|extract|method)|(query|headers)\.([^:]*)): ")
NAMES = {"url": "urlTemplate", "body": "bodyTemplate", "extract": "extractExpr"}
NOTHING = Registered(key="")


class Report:
    """Collects problems and warnings about a document; `line_of` is given for a document in a file."""

    def __init__(self, place: str = "", line_of: Callable[[Steps], int] | None = None) -> None:
        self._place = place
        self._line_of = line_of
        self.problems: list[str] = []
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings."""
        return tuple(_bounded(self._warnings))

    def refuse(self, at: Steps, text: str) -> None:
        """Add a problem, which makes the document invalid."""
        self.problems.append(self._say(at, text))

    def warn(self, at: Steps, text: str) -> None:
        """Add a warning."""
        self._warnings.append(self._say(at, text))

    def raise_problems(self) -> None:
        """Raise one ToolError with every problem on a line of its own."""
        if self.problems:
            problems = _bounded(self.problems)
            raise ToolError(Kind.VALIDATION, "\n".join(problems), details={"problems": problems})

    def _say(self, at: Steps, text: str) -> str:
        line = "" if self._line_of is None else f":{self._line_of(at)}"
        return ": ".join(word for word in (f"{self._place}{line}", _spell(at), text) if word)


def show(value: object) -> str:
    """A value, shortened, as messages quote it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _spell(at: Steps) -> str:
    """The path of a field: `impl.calls[1].urlTemplate`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in at)
    return "".join(steps).removeprefix(".")


def _bounded(remarks: list[str]) -> list[str]:
    more = len(remarks) - MAX_TOLD
    return [*remarks[:MAX_TOLD], f"and {more} more of this kind"] if more > 0 else remarks


def open_document(document: object, place: str = "") -> Fields:
    """Open the document of a client; refuses what is not an object, or not JSON."""
    try:
        if not isinstance(document, Mapping):
            raise ToolError(
                Kind.VALIDATION, f"{place}: must be an object; write it between {{ and }}".removeprefix(": ")
            )
        values = dict(document)
        check_plain(values, place=place or "document")
    except ToolError as error:
        raise ToolError(error.kind, error.message, details={"problems": [error.message]}) from None
    return Fields(Report(place), values)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object in a document, and its path."""

    report: Report
    values: Mapping[str, object]
    at: Steps = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def refuse(self, name: str, text: str) -> None:
        """Add a problem with a key."""
        self.report.refuse((*self.at, name), text)

    def warn(self, name: str, text: str) -> None:
        """Add a warning about a key."""
        self.report.warn((*self.at, name), text)

    def require(self, samples: Mapping[str, str]) -> None:
        """Refuse a missing key; `samples` are example values for the messages."""
        for name, sample in samples.items():
            if name not in self.values:
                self.report.refuse(self.at, f'{name} is missing; write "{name}": {sample}')

    def text(self, name: str, *, may_be_empty: bool = True, longest: int = 0) -> str:
        """A string, empty if it is absent; `longest` limits its characters."""
        value = self.values.get(name, "")
        if not isinstance(value, str):
            self.refuse(name, f"must be text, not {show(value)}; write it in quotes")
            return ""
        if name in self.values and not may_be_empty and not value.strip():
            self.refuse(name, "must not be empty; write what it is")
        if longest and len(value) > longest:
            self.refuse(name, f"has {len(value)} characters, the limit is {longest}; shorten it")
        return value

    def switch(self, name: str) -> bool | None:
        """A boolean; None if it is absent."""
        value = self.values.get(name)
        if name in self.values and not isinstance(value, bool):
            self.refuse(name, f"must be true or false, not {show(value)}")
        return value if isinstance(value, bool) else None

    def word(self, name: str, words: type[Word], default: Word) -> Word:
        """A member of an enum."""
        value = self.values.get(name, default)
        if isinstance(value, str) and value in [*words]:
            return words(value)
        choices = " or ".join(f'"{word}"' for word in words)
        self.refuse(name, f"{show(value)} is unknown; write {choices}")
        return default

    def whole(self, name: str, *, at_least: int, at_most: int, default: int) -> int:
        """An integer within bounds."""
        value = self.values.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and at_least <= value <= at_most:
            return value
        self.refuse(name, f"must be an integer from {at_least} to {at_most}, not {show(value)}; write {default}")
        return default

    def number(self, name: str, *, at_most: float, default: float) -> float:
        """A non-negative number."""
        value = self.values.get(name, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= at_most:
            return value
        self.refuse(name, f"must be a number from 0 to {at_most:g}, not {show(value)}; write {default:g}")
        return default

    def items(self, name: str, *, at_most: int = MAX_ITEMS) -> list[object]:
        """A list, empty if it is absent."""
        value = self.values.get(name, [])
        if not isinstance(value, list):
            self.refuse(name, f"must be a list, not {show(value)}; write it between [ and ]")
            return []
        if len(value) > at_most:
            self.refuse(name, f"has {len(value)} items, the limit is {at_most}; leave some out")
            return []
        return value

    def part(self, name: str) -> Fields | None:
        """A nested object; None if it is absent."""
        if name not in self.values:
            return None
        value = self.values[name]
        if isinstance(value, dict):
            return Fields(self.report, value, (*self.at, name))
        self.refuse(name, f"must be an object, not {show(value)}; write it between {{ and }}")
        return None

    def texts(self, name: str) -> dict[str, str]:
        """An object of strings, empty if it is absent."""
        inner = self.part(name)
        if inner is None:
            return {}
        if len(inner.values) > MAX_ITEMS:
            self.refuse(name, f"has {len(inner.values)} keys, the limit is {MAX_ITEMS}; leave some out")
            return {}
        return {key: inner.text(key) for key in inner.values}

    def strangers(self, known: Collection[str]) -> list[tuple[str, str]]:
        """The unknown keys, each with the known key that it looks like, or an empty string."""
        unknown = [name for name in self.values if name not in known]
        if not unknown:
            return []
        meant = dict(near_misses([name for name in unknown[:MAX_STRANGERS] if len(name) < 2 * MAX_STRANGERS], known))
        return [(name, meant.get(name, "")) for name in unknown]

    def warn_of_strangers(self, known: Collection[str]) -> None:
        """Warn of unknown keys, which are stored but not used."""
        for name, meant in self.strangers(known):
            self.warn(name, f"is not read; did you mean {meant}?" if meant else "is kept and not read")


class ToolType(StrEnum):
    """How a tool is implemented."""

    GO = "go"
    HTTP = "http"


class Method(StrEnum):
    """The allowed HTTP methods."""

    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    OPTIONS = "OPTIONS"


def read_implementation(document: Fields, parameters: Mapping[str, object]) -> Registered | Http:
    """Read `impl`, which must match `type`."""
    impl = document.part("impl")
    if "type" not in document or impl is None:
        return NOTHING
    known = document.values["type"]
    if not isinstance(known, str) or known not in [*ToolType]:
        document.refuse("type", f'{show(known)} is unknown; write "go" or "http"')
        return NOTHING
    return _read_function(impl) if known == ToolType.GO else _read_requests(impl, parameters)


def _read_function(impl: Fields) -> Registered:
    _refuse_keys(impl, (*REQUEST_KEYS, "calls"), 'is for tools of type "http"')
    impl.require({"goFunc": '"the key of a registered function"'})
    impl.warn_of_strangers((*GO_KEYS, *REQUEST_KEYS, "calls", "model"))
    return Registered(key=impl.text("goFunc", may_be_empty=False), model=impl.text("model", may_be_empty=False))


def _read_requests(impl: Fields, parameters: Mapping[str, object]) -> Http:
    _refuse_keys(impl, GO_KEYS, 'is for tools of type "go"')
    impl.warn_of_strangers((*REQUEST_KEYS, *GO_KEYS, "calls", "model"))
    before = len(impl.report.problems)
    calls = _read_calls(impl, parameters) if "calls" in impl else (_read_call(impl),)
    http = Http(calls=calls, model=impl.text("model", may_be_empty=False))
    if len(impl.report.problems) == before:
        _check_templates(impl, http, parameters)
    return http


def _check_templates(impl: Fields, http: Http, parameters: Mapping[str, object]) -> None:
    """Refuse invalid templates and expressions, with the keys of the document as places."""
    for problem in check_http(http, parameters):
        place = PLACE.match(problem)
        if place is None:
            impl.report.refuse(impl.at, problem)
            continue
        number, part, group, name = place.groups()
        call = ("calls", int(number or 0)) if "calls" in impl else ()
        steps = (NAMES.get(part, part),) if part else (group, name)
        impl.report.refuse((*impl.at, *call, *steps), problem[place.end() :])


def _read_calls(impl: Fields, parameters: Mapping[str, object]) -> tuple[HttpCall, ...]:
    _refuse_keys(impl, REQUEST_KEYS, "stands beside calls; write it into each of the calls")
    written = impl.items("calls", at_most=MAX_CALLS)
    if impl.values["calls"] == []:
        impl.refuse("calls", 'holds no call; write [{"name": "first", "urlTemplate": "https://…"}]')
    calls = tuple(_read_named_call(impl, index, item) for index, item in enumerate(written))
    _refuse_taken_names(impl, [call.name for call in calls], parameters)
    return calls


def _refuse_taken_names(impl: Fields, names: list[str], parameters: Mapping[str, object]) -> None:
    properties = parameters.get("properties")
    arguments = properties if isinstance(properties, dict) else {}
    for index, name in enumerate(names):
        taken = "an argument" if name in arguments else "an earlier call" if name in names[:index] else ""
        if name and taken:
            at = (*impl.at, "calls", index, "name")
            impl.report.refuse(at, f"{show(name)} is the name of {taken}; choose another one")


def _read_named_call(impl: Fields, index: int, item: object) -> HttpCall:
    at = (*impl.at, "calls", index)
    if not isinstance(item, dict):
        impl.report.refuse(at, f'must be an object, not {show(item)}; write {{"name": …, "urlTemplate": …}}')
        return HttpCall(url="")
    call = Fields(impl.report, item, at)
    call.require({"name": f'"call{index + 1}"'})
    _refuse_keys(call, (*GO_KEYS, "calls"), "does not belong into a call")
    call.warn_of_strangers((*REQUEST_KEYS, *GO_KEYS, "calls", "name"))
    return _read_call(call, _call_name(call))


def _call_name(call: Fields) -> str:
    name = call.text("name")
    if isinstance(call.values.get("name"), str) and (CALL_NAME.fullmatch(name) is None or len(name) > MAX_NAME):
        call.refuse("name", f"{show(name)} is not a name; use up to {MAX_NAME} letters, digits and '_', no digit first")
    return name


def _read_call(call: Fields, name: str = "") -> HttpCall:
    call.require({"urlTemplate": '"https://…"'})
    return HttpCall(
        url=call.text("urlTemplate"),
        name=name,
        method=call.word("method", Method, Method.GET).value,
        query=call.texts("query"),
        headers=call.texts("headers"),
        body=call.text("bodyTemplate"),
        success=_success(call),
        timeout_ms=call.whole("timeoutMs", at_least=1, at_most=MAX_TIMEOUT_MS, default=TIMEOUT_MS),
        encoding=call.word("responseEncoding", Encoding, Encoding.JSON),
        extract=call.text("extractExpr"),
        error_mode=call.word("errorMode", ErrorMode, ErrorMode.FAIL),
        retry=_retry(call),
    )


def _success(call: Fields) -> frozenset[int]:
    codes = call.items("successCodes")
    for index, code in enumerate(codes):
        if not _is_status(code):
            text = f"{show(code)} is not a status; write an integer from {STATUSES.start} to {STATUSES.stop - 1}"
            call.report.refuse((*call.at, "successCodes", index), text)
    return frozenset(code for code in codes if _is_status(code) and isinstance(code, int))


def _is_status(code: object) -> bool:
    return isinstance(code, int) and code in STATUSES


def _retry(call: Fields) -> RetryPolicy | None:
    written = call.part("retry")
    if written is None:
        return None
    written.warn_of_strangers(RETRY_KEYS)
    written.require({"max_attempts": "3"})
    attempts, backoff, initial, longest, multiplier = RETRY_KEYS
    return RetryPolicy(
        max_attempts=written.whole(attempts, at_least=1, at_most=MAX_ATTEMPTS, default=1),
        backoff=written.word(backoff, Backoff, Backoff.EXPONENTIAL),
        initial_delay=written.number(initial, at_most=MAX_DELAY_SECONDS, default=1),
        max_delay=written.number(longest, at_most=MAX_DELAY_SECONDS, default=60),
        multiplier=written.number(multiplier, at_most=MAX_MULTIPLIER, default=2),
    )


def _refuse_keys(fields: Fields, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name in fields:
            fields.refuse(name, why if ";" in why else f"{why}; remove it")
