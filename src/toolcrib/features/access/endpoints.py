"""HTTP endpoints that sign a person in to the web page, say who is signed in, and sign them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.access.sign_in import COOKIE, SESSION_SECONDS, csrf_of, session_in, sign_in_of
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import Answer, answer_json, read_body, text_of
from toolcrib.toolkit.http.contract import TEXT, Body, Reply, closed
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.features.access.sign_in import SignIn
    from toolcrib.toolkit.http import Header, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

PATH = "/ui/session"
SIGN_IN_BODY = Body(
    name="SignIn",
    schema=closed(
        code={**TEXT, "description": "What a one-time link ends with."}, token={**TEXT, "description": "A token."}
    ),
    example={"code": "…"},
)


class SignInEndpoints:
    """Sign in and out, and say who is signed in."""

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
    """The cookie: no script reads it, and no other site sends it; behind TLS it never travels without."""
    secure = "; Secure" if request.header(b"x-forwarded-proto") == "https" else ""
    return (
        b"set-cookie",
        f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}".encode(),
    )


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
)
