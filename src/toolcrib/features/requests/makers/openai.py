"""A model writes the tool: any endpoint that speaks the wire format of OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.features.requests.makers.chat import complaint, read_answer, write_messages
from toolcrib.infra.egress.messages import Request
from toolcrib.infra.files.disk import way_to
from toolcrib.infra.files.durable import PRIVATE_FILE, discard_in, explained, replace_in
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.documents import read_json
from toolcrib.lib.hidden_text import drop_hidden
from toolcrib.lib.http_syntax import HostList, HostPattern, parse_url
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.limits import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.egress.messages import Response
    from toolcrib.infra.secrets.secret import Secret
    from toolcrib.model.protocols import Commission

MAX_ANSWER_BYTES = 2_000_000
MAX_SENT_BYTES = 2_000_000
SHOWN_REASON = 500
MAX_MESSAGE = 1_000
RETRIES = RetryPolicy(max_attempts=5, initial_delay=1.0, max_delay=30.0, jitter=True)
# If the endpoint asks for a longer pause, the attempt fails and the next one asks again.
MAX_WAIT_SECONDS = 60.0
SUCCESS = range(200, 300)
SERVER_ERRORS = range(500, 600)
REQUEST_TIMEOUT, TOO_MANY_REQUESTS = 408, 429
RETRY_AFTER = "retryAfter"
KEPT_BODY = 100_000
SHORTEST_KEY = 16
# Retrying does not help an account without credit.
NO_MONEY = "insufficient_quota"
PACKAGE = "package"
_SECONDS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")


class OpenAIMaker:
    """Asks one endpoint for the files of each package. The URL is the permission to reach its host at its port."""

    name = "openai"

    def __init__(
        self,
        egress: Callable[[], Egress],
        *,
        url: str,
        model: str,
        key: Secret | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        retries: RetryPolicy = RETRIES,
    ) -> None:
        try:
            place = parse_url(f"{url.rstrip('/')}/chat/completions")
        except ToolError as problem:
            raise SettingsError(f"builder.url: {problem.message}") from problem
        if "?" in url or "#" in url:
            raise SettingsError("builder.url: leave out what follows the path; write https://host/v1")
        if not model:
            raise SettingsError("builder.model names no model; write the one that the endpoint should use")
        self._egress = egress
        self._url = place
        self._model = model
        self._key = key
        self._hosts = HostList(
            patterns=(HostPattern(host=place.host, port=place.port),), where="the setting builder.url"
        )
        self._max_answer_bytes = max_answer_bytes
        self._retries = retries
        self._masking = Masking()
        if key is not None:
            self._masking.add(key.reveal())

    async def make(self, commission: Commission) -> bool:
        """Have the package written; an answer that cannot be used raises OUTPUT_INVALID, which says what to do better."""
        try:
            files = await self._write(commission)
        except ToolError as problem:
            error = self._without_key(problem)
        else:
            await asyncio.to_thread(_fill, commission.folder, files)
            commission.say(f"{self._model} wrote {', '.join(sorted(files))}")
            return True
        # Raised out here, it does not carry along the one that may tell the key.
        raise error

    async def close(self) -> None:
        """Nothing to close: the connections belong to the egress client."""

    async def _write(self, commission: Commission) -> dict[str, bytes]:
        request = self._request(commission)
        commission.say(f"asked {self._model} at {self._url.origin}")
        response = await self._ask(request, commission.deadline, commission.say)
        files = read_answer(self._document(response), entry=commission.request.entry_file)
        if any(self._tells_key(content) for content in files.values()):
            raise complaint("the answer repeats the key of the endpoint; write no keys into code")
        return files

    def _request(self, commission: Commission) -> Request:
        body = {"messages": write_messages(commission), "model": self._model}
        key = {} if self._key is None else {"Authorization": f"Bearer {self._key.reveal()}"}
        return Request(
            url=self._url,
            method="POST",
            headers={"Accept": "application/json", "Content-Type": "application/json", **key},
            body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
            secret_headers=frozenset(key),
        )

    async def _ask(self, request: Request, deadline: float, say: Callable[[str], None]) -> Response:
        """The answer, asked for again while that may help and there is time."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._send(request, deadline - time.monotonic())
            except ToolError as problem:
                pause = self._pause_after(attempt, problem, deadline - time.monotonic())
                if pause is None:
                    raise
                reason = self._shown(problem.message, SHOWN_REASON)
            say(f"{reason}; asked again in {pause:.1f} s")
            await asyncio.sleep(pause)

    async def _send(self, request: Request, seconds: float) -> Response:
        try:
            response = await self._egress().fetch(
                request,
                hosts=self._hosts,
                max_bytes=self._max_answer_bytes,
                timeout=max(seconds, 0),
                max_sent_bytes=MAX_SENT_BYTES,
            )
        except ToolError as problem:
            # What is too large on its way out tells no origin.
            if problem.kind is Kind.LIMIT_EXCEEDED and "origin" in problem.details:
                raise complaint(f"{problem.message}; write less, and nothing but the code") from problem
            raise
        if response.status in SUCCESS:
            return response
        raise self._refusal(response)

    def _pause_after(self, attempt: int, error: ToolError, left: float) -> float | None:
        """Seconds to wait before the endpoint is asked again; None when it is not to be."""
        if not error.retryable or attempt >= self._retries.max_attempts:
            return None
        pause = self._retries.delay_after(attempt)
        if self._retries.jitter:
            pause = random.uniform(0, pause)  # noqa: S311 - spreads callers out, keeps no secret
        asked = error.details.get(RETRY_AFTER)
        if isinstance(asked, float):
            if asked > MAX_WAIT_SECONDS:
                return None
            pause = max(pause, asked)
        return pause if pause < left else None

    def _refusal(self, response: Response) -> ToolError:
        """The error for a status that is no success, with what the endpoint says about it."""
        status = response.status
        code, reason = _reason_of(response.body)
        again = (status in {REQUEST_TIMEOUT, TOO_MANY_REQUESTS} or status in SERVER_ERRORS) and code != NO_MONEY
        message = f"{self._url.origin} answered with status {status}"
        if shown := self._shown(reason, SHOWN_REASON):
            message = f"{message}: {shown}"
        kind, cure = _MEANINGS.get(status, (Kind.TRANSIENT if again else Kind.PERMANENT, ""))
        details: dict[str, object] = {"origin": self._url.origin, "status": status}
        if _SECONDS.fullmatch(asked := response.headers.get("retry-after", "")):
            details[RETRY_AFTER] = float(asked)
        return ToolError(kind, f"{message}; {cure}" if cure else message, retryable=again, details=details)

    def _document(self, response: Response) -> object:
        try:
            return read_json(response.body, place=self._url.origin, max_bytes=self._max_answer_bytes)
        except ToolError as problem:
            raise complaint(f"the answer is no JSON: {problem.message}; is builder.url right?") from problem

    def _tells_key(self, content: bytes) -> bool:
        # Endpoints that want no key are often given a plain word, which code may hold.
        is_word = self._key is None or len(self._key.reveal()) < SHORTEST_KEY
        return not is_word and self._masking.is_in(content.decode("utf-8", "replace"))

    def _without_key(self, error: ToolError) -> ToolError:
        """The same error, fit to be shown."""
        hidden = {name: self._masking.hide_in(detail) for name, detail in error.details.items()}
        return ToolError(error.kind, self._shown(error.message, MAX_MESSAGE), retryable=error.retryable, details=hidden)

    def _shown(self, text: str, letters: int) -> str:
        """The beginning of a text; hidden before it is cut, so that no half of a secret is left."""
        return self._masking.hide(drop_hidden(text)).strip()[:letters]


_MEANINGS: Mapping[int, tuple[Kind, str]] = {
    401: (Kind.AUTH, "look at the secret that builder.key names"),
    403: (Kind.AUTH, "look at the secret that builder.key names, and at what it may use"),
    404: (Kind.PERMANENT, "look at builder.url and builder.model"),
    429: (Kind.RATE_LIMIT, ""),
}


def _reason_of(body: bytes) -> tuple[str, str]:
    """The code and the words of an error as the endpoint tells it; any text will do."""
    try:
        document = read_json(body, max_bytes=MAX_ANSWER_BYTES)
    except ToolError:
        return "", body[:KEPT_BODY].decode("utf-8", "replace")
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        return "", str(error or "")
    return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")


def _fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Let the package hold these files and no others."""
    with explained(str(folder / PACKAGE)):
        with way_to(folder, ()) as (top,), suppress(FileNotFoundError):
            discard_in(top, PACKAGE)
        for path, content in files.items():
            *folders, name = path.split("/")
            with way_to(folder, (PACKAGE, *folders), make=True) as way:
                replace_in(way[-1], name, content, mode=PRIVATE_FILE)
