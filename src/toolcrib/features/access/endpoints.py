"""HTTP endpoints of the web page: sign in and out, manage tokens, list the names of secrets."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.features.access.sign_in import COOKIE, SESSION_SECONDS, csrf_of, session_in, sign_in_of
from toolcrib.features.access.stored_secrets import remove_secret, store_secret
from toolcrib.features.access.view import read_view
from toolcrib.infra.egress.added_hosts import AddedHosts
from toolcrib.model.call import Scope
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.limits import read_quota
from toolcrib.toolkit.http import Answer, answer_json, read_body, text_of
from toolcrib.toolkit.http.contract import ANYTHING, TEXT, Body, Reply, closed, in_path
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.features.access.commands import AccessCrib
    from toolcrib.features.access.sign_in import SignIn
    from toolcrib.toolkit.http import Header, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

PATH = "/ui/session"
# The caller of a request without a token, which any program on this machine can send.
LOCAL = "local"
HOSTS = "hosts"
SET_UP = ("secrets", HOSTS)
DAY_SECONDS, MAX_DAYS = 86_400, 3_650
SHOWN_LIMITS = ("calls_per_minute", "concurrency", "queue", "body_bytes", "total_seconds")
TOKEN_BODY = Body(
    name="NewToken",
    schema=closed(
        ("name", "scopes"),
        name=TEXT,
        scopes={"type": "array", "items": TEXT},
        days={"type": ["integer", "null"]},
        limits={**ANYTHING, "description": "Lists under tools, bundles or tags, and a mode."},
        quota={**ANYTHING, "description": "Numbers under calls, bytes, seconds or money, with currency and per."},
    ),
    example={"name": "ci", "scopes": ["read"], "days": 30},
)
SETUP_BODY = Body(name="Setup", schema=closed(value={**TEXT, "description": "Of a secret."}), example={"value": "…"})
SIGN_IN_BODY = Body(
    name="SignIn",
    schema=closed(
        code={**TEXT, "description": "What a one-time link ends with."}, token={**TEXT, "description": "A token."}
    ),
    example={"code": "…"},
)


class SignInEndpoints:
    """Sign in, sign out, and read who is signed in."""

    def __init__(self, sign_in: SignIn, threads: Threads) -> None:
        self._sign_in = sign_in
        self._threads = threads

    async def read(self, request: Request) -> Answer:
        """GET /ui/session."""
        text = session_in(request.header(b"cookie"))
        return answer_json(
            {
                "caller": request.caller,
                "scopes": sorted(request.scopes),
                "csrf": csrf_of(text) if text else "",
            }
        )

    async def open(self, request: Request) -> Answer:
        """POST /ui/session."""
        body = await read_body(request)
        code, token = text_of(body, "code"), text_of(body, "token")
        if bool(code) == bool(token):
            raise ToolError(Kind.VALIDATION, "body: write either the code of a one-time link, or a token")
        work = (self._sign_in.open_by_code, code) if code else (self._sign_in.open_by_token, token)
        _, text = await self._threads.write(*work)
        return Answer(status=204, headers=(_cookie(request, text, SESSION_SECONDS),))

    async def close(self, request: Request) -> Answer:
        """DELETE /ui/session."""
        text = session_in(request.header(b"cookie"))
        if text:
            await self._threads.write(self._sign_in.close, text)
        return Answer(status=204, headers=(_cookie(request, "", 0),))


def _cookie(request: Request, value: str, seconds: int) -> Header:
    """The session cookie: HttpOnly, SameSite=Strict, and Secure behind TLS."""
    secure = "; Secure" if request.header(b"x-forwarded-proto") == "https" else ""
    return (
        b"set-cookie",
        f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}".encode(),
    )


class AccessEndpoints:
    """Manage tokens and list the names of secrets; a caller without a token, on loopback, cannot create or revoke one."""

    def __init__(self, crib: AccessCrib, threads: Threads) -> None:
        self._crib = crib
        self._threads = threads
        self._hosts = AddedHosts(
            crib.settings.data,
            lambda *words: crib.audit.record(*words),  # noqa: PLW0108 - later: without a project there is none
        )

    async def read(self, request: Request) -> Answer:
        """GET /ui/access."""
        tokens = await self._threads.read(self._crib.tokens.list)
        places = await self._threads.read(self._crib.secrets.places)
        usages = await self._threads.read(self._crib.usages)
        server = self._crib.settings["server"]
        return answer_json(
            {
                "tokens": [token.to_json() for token in tokens],
                "secrets": [{"name": name, "from": place} for name, place in sorted(places.items())],
                "hosts": [
                    *({"host": host, "from": "settings"} for host in self._crib.settings["http_tools"].hosts),
                    *({"host": str(host), "from": "page"} for host in await self._threads.read(self._hosts)),
                ],
                "limits": {name: getattr(server, name) for name in SHOWN_LIMITS},
                "usages": [asdict(usage) for usage in usages],
            }
        )

    async def name(self, request: Request) -> Answer:
        """GET /ui/callers/{tokenID}."""
        tokens = await self._threads.read(self._crib.tokens.list)
        name = next((token.name for token in tokens if token.id == request.path_params["tokenID"]), "")
        return answer_json({"name": name})

    async def create(self, request: Request) -> Answer:
        """POST /ui/access/tokens."""
        _require_person(request)
        body = await read_body(request)
        scopes, days, limits = body.get("scopes"), body.get("days"), body.get("limits")
        if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
            raise ToolError(Kind.VALIDATION, f"body: scopes: write a list of some of {', '.join(Scope)}")
        if not set(scopes) <= set(request.scopes):
            missing = ", ".join(sorted(set(scopes) - set(request.scopes)))
            raise ToolError(Kind.AUTH, f"a token cannot give more than its own scopes; you lack {missing}")
        if days is not None and (not isinstance(days, int) or isinstance(days, bool) or not 0 < days <= MAX_DAYS):
            raise ToolError(Kind.VALIDATION, f"body: days: write a number from 1 to {MAX_DAYS}, or leave it out")
        try:
            view = read_view(limits) if limits else None
        except ValueError:
            raise ToolError(Kind.VALIDATION, "body: limits: write lists under tools, bundles or tags") from None
        seconds = None if days is None else days * DAY_SECONDS
        quota = read_quota(body.get("quota"))
        token, secret = await self._threads.write(
            self._crib.tokens.create,
            text_of(body, "name") or "",
            scopes,
            seconds=seconds,
            view=view,
            quota=quota,
        )
        return answer_json({**token.to_json(), "token": secret}, status=201)

    async def revoke(self, request: Request) -> Answer:
        """DELETE /ui/access/tokens/{tokenID}."""
        _require_person(request)
        if not await self._threads.write(self._crib.tokens.revoke, request.path_params["tokenID"]):
            raise ToolError(Kind.NOT_FOUND, "there is no token by this id; see the list")
        return Answer(status=204)

    async def put(self, request: Request) -> Answer:
        """PUT /ui/setup/{kind}/{name}."""
        kind, name = _read_kind(request)
        body = await read_body(request)
        if kind == HOSTS:
            await self._threads.write(partial(self._hosts.change, name, allowed=True))
            return Answer(status=204)
        value = body.get("value")
        if not isinstance(value, str):
            raise ToolError(Kind.VALIDATION, "body: value: write the secret as a text")
        await self._threads.write(store_secret, self._crib, name, value)
        return Answer(status=204)

    async def remove(self, request: Request) -> Answer:
        """DELETE /ui/setup/{kind}/{name}."""
        kind, name = _read_kind(request)
        if kind == HOSTS:
            await self._threads.write(partial(self._hosts.change, name, allowed=False))
            return Answer(status=204)
        if not await self._threads.write(remove_secret, self._crib, name):
            message = f"the project stores no secret {name!r:.80}; one from elsewhere is removed there"
            raise ToolError(Kind.NOT_FOUND, message)
        return Answer(status=204)


def _read_kind(request: Request) -> tuple[str, str]:
    kind = request.path_params["kind"]
    if kind not in SET_UP:
        raise ToolError(Kind.NOT_FOUND, f"only {' and '.join(SET_UP)} are set up here")
    return kind, request.path_params["name"]


def _require_person(request: Request) -> None:
    if request.caller == LOCAL:
        cure = Cure("make a link with: crib page", "sign in with a link from the operator")
        raise ToolError(Kind.AUTH, "tokens are managed by a person who has signed in", cure=cure)


def _make_access(host: Host) -> AccessEndpoints:
    return AccessEndpoints(host.crib, host.threads)


def _make(host: Host) -> SignInEndpoints:
    return SignInEndpoints(sign_in_of(host.crib), host.threads)


endpoints = (
    EndpointTable(
        tag="sign-in",
        summary="Who uses the web page.",
        make=_make,
        described=False,
        endpoints=(
            Endpoint(
                name="readSignIn",
                method="GET",
                path=PATH,
                handler=SignInEndpoints.read,
                scope=Scope.READ,
                summary="Read who is signed in.",
                replies={200: Reply(description="The caller and its scopes.")},
            ),
            Endpoint(
                name="signIn",
                method="POST",
                path=PATH,
                handler=SignInEndpoints.open,
                scope=None,
                summary="Sign in with the code of a one-time link or with a token.",
                body=SIGN_IN_BODY,
                replies={204: Reply(description="The session is in a cookie.")},
            ),
            Endpoint(
                name="signOut",
                method="DELETE",
                path=PATH,
                handler=SignInEndpoints.close,
                scope=Scope.READ,
                summary="Sign out.",
                replies={204: Reply(description="The session has ended.")},
            ),
        ),
    ),
    EndpointTable(
        tag="access",
        summary="Tokens and the names of secrets.",
        make=_make_access,
        described=False,
        places=(
            in_path("tokenID", "The id of a token.", TEXT, example="0123456789abcdef"),
            in_path("kind", "What is set.", {"enum": [*SET_UP]}, example=HOSTS),
            in_path(
                "name",
                "The name of a secret, or of a public host; `*.` before it means all below it.",
                TEXT,
                example="api.example.com",
            ),
        ),
        endpoints=(
            Endpoint(
                name="readAccess",
                method="GET",
                path="/ui/access",
                handler=AccessEndpoints.read,
                scope=Scope.MANAGE,
                summary="List tokens, names of secrets and limits of the server.",
                replies={200: Reply(description="None of them with its value.")},
            ),
            Endpoint(
                name="readCaller",
                method="GET",
                path="/ui/callers/{tokenID}",
                handler=AccessEndpoints.name,
                # A person who approves a call has to know who made it.
                scope=Scope.APPROVE,
                summary="Read who has a token, by the id that callers are known by.",
                replies={200: Reply(description="The name; empty for what is not a token.")},
            ),
            Endpoint(
                name="createToken",
                method="POST",
                path="/ui/access/tokens",
                handler=AccessEndpoints.create,
                scope=Scope.MANAGE,
                summary="Create a token.",
                body=TOKEN_BODY,
                replies={201: Reply(description="The token, shown only now.")},
            ),
            Endpoint(
                name="revokeToken",
                method="DELETE",
                path="/ui/access/tokens/{tokenID}",
                handler=AccessEndpoints.revoke,
                scope=Scope.MANAGE,
                summary="Revoke a token.",
                refusals=(404,),
                replies={204: Reply(description="It is revoked.")},
            ),
            Endpoint(
                name="putAccess",
                method="PUT",
                path="/ui/setup/{kind}/{name}",
                handler=AccessEndpoints.put,
                scope=Scope.SETUP,
                summary="Store a secret, which no endpoint reads, or allow a public host to HTTP tools of bundles.",
                body=SETUP_BODY,
                replies={204: Reply(description="It is stored.")},
            ),
            Endpoint(
                name="removeAccess",
                method="DELETE",
                path="/ui/setup/{kind}/{name}",
                handler=AccessEndpoints.remove,
                scope=Scope.SETUP,
                summary="Remove a secret of the project, or a host that was allowed here.",
                refusals=(404,),
                replies={204: Reply(description="It is removed.")},
            ),
        ),
    ),
)
