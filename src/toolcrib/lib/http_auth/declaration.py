"""Parse and validate the declaration `auth` of HTTP tools, which is the same in every format.

It contains secrets only by name, `${secret:NAME}`; messages never quote a value, because it may be a secret that the author
typed by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.lib.http_auth import REFERENCE, Reference, hmac_string, http_message
from toolcrib.lib.http_auth.aws import OWN_HEADERS
from toolcrib.lib.http_auth.kinds import (
    AUTHORIZATION,
    AUTHORIZATION_CODE,
    BASIC,
    BODY,
    CLIENT_CREDENTIALS,
    GRANTS,
    REFRESH_TOKEN,
    ApiKey,
    Auth,
    Aws,
    Basic,
    Bearer,
    Hmac,
    HttpSignature,
    OAuth2,
)
from toolcrib.lib.http_syntax import check_header, parse_url
from toolcrib.lib.names import near_misses
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Http

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcrib.lib.http_auth.hmac_string import Pieces
    from toolcrib.lib.http_auth.kinds import Value
    from toolcrib.lib.http_syntax import Url
    from toolcrib.model.tool import Tool

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST = 2_000
MAX_ENTRIES = 32
MAX_EXPIRES_SECONDS = 86_400

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLAIN = re.compile(r"[\x20-\x7e]+")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_LABEL = re.compile(r"[a-z*][a-z0-9_.*-]{0,63}")
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")
# Parameters that Toolcrib itself sets in a token request.
_RESERVED_PARAMETERS = frozenset(
    {
        *("grant_type", "client_id", "client_secret", "refresh_token", "scope", "code", "redirect_uri"),
        *("code_verifier", "code_challenge", "code_challenge_method", "state", "response_type"),
    }
)


def read_auth(written: object) -> Auth:
    """Parse a declaration; raises ToolError with every problem, each on a line of its own."""
    auth, problems = _read(written)
    if auth is None or problems:
        raise ToolError(Kind.VALIDATION, "\n".join(problems), details={"problems": problems})
    return auth


def check_auth(written: object, *, is_host_fixed: bool, scheme: str) -> list[str]:
    """Every problem of a declaration, each with its place; `is_host_fixed` says that the host has no slots."""
    auth, problems = _read(written)
    if not is_host_fixed:
        cure = "write scheme and host of the url out"
        problems.append(f"auth: a caller would choose who gets the credentials; {cure}")
    if isinstance(auth, Aws) and not auth.is_body_signed and scheme == "http":
        problems.append("auth.payload: an unsigned body can be changed on its way over http; use https, or sign it")
    return problems


def headers_written(written: object) -> frozenset[str]:
    """The headers that a declaration sets, in lower case, which the request must not have; empty if it is invalid."""
    auth, _ = _read(written)
    return frozenset() if auth is None else frozenset(name.lower() for name in _headers_of(auth))


def declarations_of(tool: Tool) -> Iterator[Mapping[str, object]]:
    """The declarations of all requests of a tool, in any format, valid or not."""
    run = tool.run
    if isinstance(run, Http):
        yield from (call.auth for call in run.calls if call.auth)
    elif isinstance(run, Chained):
        calls = run.config.get("calls")
        for described in (run.config, *(calls if isinstance(calls, list) else ())):
            auth = described.get("auth") if isinstance(described, Mapping) else None
            if isinstance(auth, Mapping):
                yield auth


def _headers_of(auth: Auth) -> tuple[str, ...]:
    if isinstance(auth, ApiKey):
        return (auth.header,) if auth.header else ()
    if isinstance(auth, Hmac):
        return tuple(auth.headers)
    if isinstance(auth, HttpSignature):
        return ("Signature", "Signature-Input")
    return OWN_HEADERS if isinstance(auth, Aws) else (AUTHORIZATION,)


def _read(written: object) -> tuple[Auth | None, list[str]]:
    if not isinstance(written, Mapping):
        return None, [f'auth: write a mapping such as {{"type": "bearer", "token": "${{secret:NAME}}"}}; {_types()}']
    kind = written.get("type")
    if not isinstance(kind, str) or kind not in READERS:
        reason = "type is missing" if kind is None else "is unknown"
        return None, [f"auth.type: {reason}; {_types()}"]
    fields = AuthMembers(written)
    auth = READERS[kind](fields)
    return auth, [*fields.unknown_fields(), *fields.problems]


def _types() -> str:
    return f"the types are {', '.join(READERS)}"


class AuthMembers:
    """Reads the members of a declaration, and collects their problems."""

    def __init__(self, values: Mapping[object, object]) -> None:
        self._values = values
        self._known = ["type"]
        self.problems: list[str] = []

    def refuse(self, name: str, text: str) -> None:
        """Add a problem with a member."""
        self.problems.append(f"auth.{name}: {text}")

    def unknown_fields(self) -> Iterator[str]:
        """Problems with members that a declaration of this type does not have."""
        unknown = [str(name)[:40] for name in self._values if name not in self._known]
        meant = dict(near_misses(unknown, self._known))
        known = list(dict.fromkeys(self._known))
        for name in unknown[:MAX_ENTRIES]:
            hint = f"did you mean {meant[name]}?" if name in meant else f"write only {', '.join(known)}"
            yield f"auth.{name}: is unknown; {hint}"

    def get(self, name: str) -> object:
        """The unchecked value of a member, or None."""
        self._known.append(name)
        return self._values.get(name)

    def secret(self, name: str) -> Reference:
        """A required reference to a secret or variable."""
        found = self.maybe_secret(name)
        if found is None and name not in self._values:
            self.refuse(name, f'is missing; write "{name}": "${{secret:NAME}}"')
        return found or Reference("secret", "NAME")

    def maybe_secret(self, name: str) -> Reference | None:
        """An optional reference to a secret or variable."""
        value = self.get(name)
        if name not in self._values:
            return None
        found = REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            # The value is not quoted: it may be the secret itself.
            self.refuse(name, 'name a secret, "${secret:NAME}", and store it with: crib secret set NAME')
            return None
        return Reference(found[1], found[2])

    def value(self, name: str, *, default: str | None = None) -> Value:
        """A literal text, or a reference to a secret or variable."""
        written = self.get(name)
        if isinstance(written, str) and (found := REFERENCE.fullmatch(written)):
            return Reference(found[1], found[2])
        return self._checked_text(name, written, default, _PLAIN)

    def text(self, name: str, *, default: str | None = None, pattern: re.Pattern[str] = _PLAIN) -> str:
        """A literal text in printable ASCII."""
        return self._checked_text(name, self.get(name), default, pattern)

    def _checked_text(self, name: str, written: object, default: str | None, pattern: re.Pattern[str]) -> str:
        if name not in self._values:
            if default is None:
                self.refuse(name, f'is missing; write "{name}": "…"')
            return default or ""
        if not isinstance(written, str) or len(written) > LONGEST or not pattern.fullmatch(written):
            self.refuse(name, "write a short text in ASCII, as the server expects it")
            return ""
        if "${" in written:
            self.refuse(name, 'takes no slots; write the text, or "${secret:NAME}" and nothing else')
        return written

    def word(self, name: str, words: tuple[str, ...], *, default: str | None = None) -> str:
        """One of these words; without a default the member is required."""
        written = self.get(name)
        if name not in self._values and default is not None:
            return default
        if not isinstance(written, str) or written not in words:
            self.refuse(name, f"write one of {', '.join(words)}")
            return words[0]
        return written

    def url(self, name: str, *, is_needed: bool) -> Url | None:
        """A URL with https, or a loopback URL."""
        written = self.get(name)
        if name not in self._values:
            if is_needed:
                self.refuse(name, f'is missing; write "{name}": "https://…"')
            return None
        try:
            if not isinstance(written, str) or "${" in written:
                raise ToolError(Kind.VALIDATION, "write a URL as text, without slots")
            url = parse_url(written)
        except ToolError as problem:
            self.refuse(name, problem.message)
            return None
        if url.scheme != "https" and url.host not in LOOPBACK:
            self.refuse(name, "write a URL with https; http is for this machine alone")
        return url

    def texts(self, name: str) -> list[str]:
        """A list of texts, or one text of words that are separated by spaces."""
        written = self.get(name)
        if written is None:
            return []
        items = written.split() if isinstance(written, str) else written
        if not isinstance(items, list) or len(items) > MAX_ENTRIES or not all(isinstance(item, str) for item in items):
            self.refuse(name, f"write a list of at most {MAX_ENTRIES} texts")
            return []
        return items

    def mapping(self, name: str, *, sample: str = "") -> dict[str, str]:
        """An object of texts; with `sample` it is required, and the message shows it."""
        written = self.get(name)
        if name not in self._values:
            if sample:
                self.refuse(name, f"is missing; write {sample}")
            return {}
        if (
            not isinstance(written, Mapping)
            or len(written) > MAX_ENTRIES
            or not all(isinstance(key, str) and isinstance(text, str) for key, text in written.items())
        ):
            self.refuse(name, f"write a mapping of at most {MAX_ENTRIES} names to texts")
            return {}
        return dict(written)

    def check_header(self, name: str, written: str) -> None:
        """Add a problem for a header that a tool may not send."""
        try:
            check_header(written, "")
        except ToolError as problem:
            self.refuse(name, problem.message)

    def pieces(self, name: str, text: str, *, with_signature: bool) -> Pieces:
        """The literal parts and slots of a signed string, or of a header."""
        try:
            return hmac_string.read_pieces(text, with_signature=with_signature)
        except ToolError as problem:
            self.refuse(name, problem.message)
            return ()


def _read_bearer(fields: AuthMembers) -> Auth:
    return Bearer(token=fields.secret("token"))


def _read_basic(fields: AuthMembers) -> Auth:
    auth = Basic(username=fields.value("username"), password=fields.secret("password"))
    if isinstance(auth.username, str) and ":" in auth.username:
        fields.refuse("username", "holds a colon, which ends a user name; leave it out")
    return auth


def _read_api_key(fields: AuthMembers) -> Auth:
    header, query = fields.get("header"), fields.get("query")
    key = ApiKey(
        key=fields.secret("key"),
        header=fields.text("header", default=""),
        query=fields.text("query", default=""),
        prefix=fields.text("prefix", default=""),
    )
    if (header is None) == (query is None):
        fields.refuse("header", 'write where the key goes: "header": "X-Api-Key" or "query": "key", one of them')
    elif header is not None and key.header:
        fields.check_header("header", key.header)
    if key.prefix and query is not None:
        fields.refuse("prefix", "is for a header; remove it")
    return key


def _read_hmac(fields: AuthMembers) -> Auth:
    string = fields.get("string")
    if not isinstance(string, str) or not string or len(string) > LONGEST:
        fields.refuse("string", 'write what is signed, such as "${timestamp}.${body}"')
        string = ""
    sample = '"headers": {"X-Signature": "sha256=${signature}"}'
    headers = fields.mapping("headers", sample=sample)
    pieces = {name: fields.pieces(_place(name), text, with_signature=True) for name, text in headers.items()}
    for name in headers:
        fields.check_header(_place(name), name)
    slots = {piece for text in pieces.values() for piece in text if not isinstance(piece, str)}
    if headers and hmac_string.HmacSlot(hmac_string.SIGNATURE) not in slots:
        fields.refuse("headers", f"no header carries ${{signature}}; write {sample}")
    for name in ("body", "timestamp", "nonce", "key_id"):
        _check_carried(fields, name, string, slots)
    return Hmac(
        key=fields.secret("key"),
        key_encoding=fields.word("key_encoding", hmac_string.KEY_ENCODINGS, default="text"),
        key_id=fields.value("key_id", default=""),
        algorithm=fields.word("algorithm", hmac_string.ALGORITHMS, default="sha256"),
        encoding=fields.word("encoding", hmac_string.ENCODINGS, default="hex"),
        timestamp=fields.word("timestamp", hmac_string.TIMESTAMPS, default="unix"),
        string=fields.pieces("string", string, with_signature=False),
        headers=pieces,
    )


def _place(header: str) -> str:
    return f"headers.{header[:40]}" if header.isprintable() else "headers"


def _check_carried(fields: AuthMembers, name: str, string: str, slots: set[hmac_string.HmacSlot]) -> None:
    """Refuse a body in a header, and a signature that cannot be verified because time or nonce are not sent."""
    slot = hmac_string.HmacSlot(name)
    if name == "body":
        if slot in slots:
            fields.refuse("headers", "a header cannot carry the body; send a hash of it, such as ${body_sha256}")
    elif f"${{{name}}}" in string and name != "key_id" and slot not in slots:
        fields.refuse("headers", f"the server needs ${{{name}}} to verify the signature; add a header with it")


def _read_http_signature(fields: AuthMembers) -> Auth:
    written = fields.texts("components")
    for component in written:
        try:
            http_message.check_component(component)
        except ToolError as problem:
            fields.refuse("components", problem.message)
    if len(set(written)) != len(written):
        fields.refuse("components", "one of them is there twice; remove it")
    nonce = fields.get("nonce")
    if nonce is not None and not isinstance(nonce, bool):
        fields.refuse("nonce", "write true or false")
    expires = fields.get("expires_seconds")
    if expires is not None and (
        isinstance(expires, bool) or not isinstance(expires, int) or not 1 <= expires <= MAX_EXPIRES_SECONDS
    ):
        fields.refuse("expires_seconds", f"write an integer from 1 to {MAX_EXPIRES_SECONDS}")
        expires = None
    return HttpSignature(
        key=fields.secret("key"),
        key_id=fields.value("key_id"),
        algorithm=fields.word("algorithm", http_message.ALGORITHMS),
        components=tuple(written) or http_message.COMPONENTS,
        label=fields.text("label", default="sig1", pattern=_LABEL),
        tag=fields.text("tag", default=""),
        expires_seconds=expires if isinstance(expires, int) else 0,
        nonce=nonce is True,
    )


def _read_aws(fields: AuthMembers) -> Auth:
    return Aws(
        access_key_id=fields.value("access_key_id"),
        secret_access_key=fields.secret("secret_access_key"),
        session_token=fields.maybe_secret("session_token"),
        region=fields.text("region", pattern=_REGION),
        service=fields.text("service", pattern=_REGION),
        is_body_signed=fields.word("payload", ("signed", "unsigned"), default="signed") == "signed",
    )


def _read_oauth2(fields: AuthMembers) -> Auth | None:
    grant = fields.word("grant", GRANTS)
    is_code, is_refresh = grant == AUTHORIZATION_CODE, grant == REFRESH_TOKEN
    token_url = fields.url("token_url", is_needed=True)
    client_id = fields.value("client_id")
    needs_secret = grant == CLIENT_CREDENTIALS
    secret = fields.secret("client_secret") if needs_secret else fields.maybe_secret("client_secret")
    client_auth = fields.word("client_auth", (BASIC, BODY), default=BASIC)
    scopes = tuple(fields.texts("scopes"))
    if not all(map(_SCOPE.fullmatch, scopes)):
        fields.refuse("scopes", "a scope holds no spaces, quotes or letters beyond ASCII; write each as its own item")
    parameters = fields.mapping("parameters")
    for name in sorted(_RESERVED_PARAMETERS.intersection(parameters)):
        fields.refuse(f"parameters.{name}", "is written by Toolcrib; remove it")
    if any("${" in text for text in parameters.values()):
        fields.refuse("parameters", "takes no slots; write the values out")
    refresh = fields.secret("refresh_token") if is_refresh else None
    login = fields.text("login", pattern=_NAME) if is_code else ""
    authorization = fields.url("authorization_url", is_needed=True) if is_code else None
    redirect = _redirect_url(fields) if is_code else None
    issuer = fields.text("issuer", default="") if is_code else ""
    if token_url is None:
        return None
    return OAuth2(
        grant=grant,
        token_url=token_url,
        client_id=client_id,
        client_secret=secret,
        client_auth=client_auth,
        scopes=scopes,
        parameters=parameters,
        refresh_token=refresh,
        login=login,
        authorization_url=authorization,
        redirect_url=redirect,
        issuer=issuer,
    )


def _redirect_url(fields: AuthMembers) -> Url | None:
    url = fields.url("redirect_url", is_needed=False)
    if url is not None and (url.scheme != "http" or url.host not in LOOPBACK or "?" in url.target):
        fields.refuse("redirect_url", "the browser comes back to this machine; write http://127.0.0.1:PORT/callback")
    return url


READERS: Mapping[str, Callable[[AuthMembers], Auth | None]] = {
    "bearer": _read_bearer,
    "basic": _read_basic,
    "api_key": _read_api_key,
    "hmac": _read_hmac,
    "http_signature": _read_http_signature,
    "aws_sigv4": _read_aws,
    "oauth2": _read_oauth2,
}
