"""A real authorization server (authlib) and an interface that takes its tokens, on one port of this machine.

It runs in threads, so that other processes can reach it. Refresh tokens are good for one use, as OAuth 2.1 asks for.
"""

import json
import secrets
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, OAuth2Request, TokenMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7636 import CodeChallenge

SCOPES = frozenset({"read", "write"})
CLIENT_ID, CLIENT_SECRET = "crib: 1", "client+secret/%&ü-7f3a"
CODE_SECONDS = 60


class Client(ClientMixin):
    """The one client; `is_public` has no secret."""

    def __init__(self):
        self.is_public = False

    def get_client_id(self):
        return CLIENT_ID

    def get_allowed_scope(self, scope):
        return " ".join(word for word in scope.split() if word in SCOPES) if scope else ""

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri.startswith("http://127.0.0.1:")

    def check_client_secret(self, client_secret):
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method, endpoint):
        return (method == "none") is self.is_public

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return True


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str
    expires_at: float = field(default_factory=lambda: time.time() + CODE_SECONDS)

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


@dataclass
class Issued(TokenMixin):
    access_token: str
    refresh_token: str
    scope: str
    is_good: bool = True
    can_refresh: bool = True

    def check_client(self, client):
        return True

    def get_scope(self):
        return self.scope


class Person:
    def get_user_id(self):
        return "ann"


class CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

    def save_authorization_code(self, code, request):
        data = request.payload.data
        self.server.codes[code] = Code(
            code, data["redirect_uri"], request.scope or "", data["code_challenge"], data["code_challenge_method"]
        )

    def query_authorization_code(self, code, client):
        return self.server.codes.get(code)

    def delete_authorization_code(self, authorization_code):
        del self.server.codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return Person()


class RefreshGrant(RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

    def authenticate_refresh_token(self, refresh_token):
        for issued in self.server.issued:
            if issued.refresh_token == refresh_token:
                return issued if issued.can_refresh else None
        return None

    def authenticate_user(self, refresh_token):
        return Person()

    def revoke_old_credential(self, refresh_token):
        refresh_token.can_refresh = refresh_token.is_good = False


class SecretGrant(ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")


class Server(AuthorizationServer):
    def __init__(self):
        super().__init__(scopes_supported=sorted(SCOPES))
        self.client = Client()
        self.codes = {}
        self.issued = []
        self.life = 3600
        self.register_grant(CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(RefreshGrant)
        self.register_grant(SecretGrant)
        self.register_token_generator("default", self.make_token)

    def make_token(self, grant_type, client, user=None, scope=None, expires_in=None, include_refresh_token=True):
        token = {"token_type": "Bearer", "access_token": f"access-{secrets.token_urlsafe(24)}", "scope": scope or ""}
        if self.life is not None:
            token["expires_in"] = self.life
        if include_refresh_token and grant_type != "client_credentials":
            token["refresh_token"] = f"refresh-{secrets.token_urlsafe(24)}"
        return token

    def query_client(self, client_id):
        return self.client if client_id == CLIENT_ID else None

    def save_token(self, token, request):
        self.issued.append(Issued(token["access_token"], token.get("refresh_token", ""), token["scope"]))

    def send_signal(self, name, *args, **kwargs):
        pass

    def create_oauth2_request(self, request):
        method, target, headers, values = request
        made = OAuth2Request(method, f"https://127.0.0.1{target}", headers=headers)
        made.payload = BasicOAuth2Payload(values)
        Values.attach(made, values)
        return made

    def handle_response(self, status, body, headers):
        return status, body, dict(headers)


class Values:
    """What authlib asks of the request of a web framework."""

    @staticmethod
    def attach(made, values):
        kind = type("Request", (type(made),), {"args": values, "form": values})
        made.__class__ = kind


class QuietServer(ThreadingHTTPServer):
    """A client that has stopped waiting is not an error of the server, and nothing to print."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class AuthorizationSite:
    """Starts and ends the server; `reply` answers token requests in its place."""

    def __init__(self):
        self.server = Server()
        self.reply = None
        self.token_requests = []
        self.api_requests = []
        self.arrived = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                site.answer(self, "")

            def do_POST(self):
                site.answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

            def log_message(self, *_):
                pass

        self.http = QuietServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(25)

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.http.server_address[1]}"

    def url(self, path):
        return f"http://{self.endpoint}{path}"

    @property
    def good(self):
        """The access tokens that the interface takes."""
        return [issued.access_token for issued in self.server.issued if issued.is_good]

    def revoke(self):
        """Access tokens are good no longer; refresh tokens still are."""
        for issued in self.server.issued:
            issued.is_good = False

    def issue(self, scope="read"):
        """Tokens as a login gives them."""
        token = self.server.make_token("authorization_code", self.server.client, scope=scope)
        self.server.save_token(token, None)
        return self.server.issued[-1]

    def answer(self, handler, body):
        path = urlsplit(handler.path).path
        if path == "/token":
            self.token_requests.append((dict(handler.headers), body))
            self.arrived.set()
            self.go_on.wait(30)
            if self.reply is not None:
                send(handler, *self.reply)
                return
            request = ("POST", handler.path, handler.headers, dict(parse_qsl(body)))
            send(handler, *self.server.create_token_response(request))
        elif path == "/authorize":
            query = dict(parse_qsl(urlsplit(handler.path).query))
            request = ("GET", handler.path, handler.headers, query)
            grant = self.server.get_consent_grant(request, end_user=Person())
            send(handler, *self.server.create_authorization_response(request, grant_user=Person(), grant=grant))
        else:
            token = handler.headers.get("Authorization", "").removeprefix("Bearer ")
            self.api_requests.append((handler.path, dict(handler.headers), body))
            is_good = token in self.good
            send(
                handler, 200 if is_good else 401, {"city": "Oslo"} if is_good else {"error": f"{token} is not good"}, {}
            )


def send(handler, status, body, headers):
    data = (
        body
        if isinstance(body, bytes)
        else (json.dumps(body) if isinstance(body, dict | list) else body or "").encode()
    )
    handler.send_response(status)
    for name, value in dict({"Content-Type": "application/json"} | dict(headers)).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
