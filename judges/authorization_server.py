"""An authorization server made with authlib: registration of clients, codes with PKCE, and access tokens that are JWTs.

`python judges/authorization_server.py PORT`: everybody is signed in as `ann`, and consents to everything.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, ClientCredentialsGrant
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, jsonify, request
from joserfc.jwk import KeySet, RSAKey

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

SCOPES = ("read", "invoke", "manage", "approve")
CODE_SECONDS = 60


class Client(ClientMixin):
    """A client that has registered itself."""

    def __init__(self, info: dict[str, Any], metadata: dict[str, Any]) -> None:
        self.client_id: str = info["client_id"]
        self.secret: str = info["client_secret"]
        self.client_info = info
        self.client_metadata = metadata

    def get_client_id(self) -> str:
        """The id that the client was given."""
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        """Where it is sent to if it does not say."""
        return str(self.client_metadata["redirect_uris"][0])

    def get_allowed_scope(self, scope: str) -> str:
        """Everything that exists."""
        return " ".join(word for word in scope.split() if word in SCOPES)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Only where it said that it would be."""
        return redirect_uri in self.client_metadata["redirect_uris"]

    def check_client_secret(self, client_secret: str) -> bool:
        """Its own secret."""
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Any."""
        return True

    def check_response_type(self, response_type: str) -> bool:
        """Codes alone."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Codes, and its own secret."""
        return grant_type in {"authorization_code", "client_credentials"}


@dataclass
class Code(AuthorizationCodeMixin):
    """A code, once."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str
    expires_at: float

    def get_redirect_uri(self) -> str:
        """Where it was sent."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """What it is good for."""
        return self.scope


class User:
    """The one who is signed in."""

    def get_user_id(self) -> str:
        """Her name."""
        return "ann"


clients: dict[str, Client] = {}
codes: dict[str, Code] = {}
key = RSAKey.generate_key(2048, parameters={"use": "sig", "alg": "RS256"}, private=True, auto_kid=True)


class CodeGrant(AuthorizationCodeGrant):
    """Gives and takes codes."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

    def save_authorization_code(self, code: str, request: Any) -> None:
        """Remember a code."""
        data = request.payload.data
        codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            code_challenge=data["code_challenge"],
            code_challenge_method=data["code_challenge_method"],
            expires_at=time.time() + CODE_SECONDS,
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        """The code, if it is this client's and still good."""
        found = codes.get(code)
        is_good = found is not None and found.client_id == client.client_id and found.expires_at > time.time()
        return found if is_good else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        """Forget a code that was used."""
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> User:
        """Whose code it is."""
        return User()


class TokenGenerator(JWTBearerTokenGenerator):
    """Writes access tokens for the resource that the client names (RFC 8707)."""

    def get_jwks(self) -> KeySet:
        """The key that signs."""
        return KeySet([key])

    def get_audiences(self, client: Client, user: User | None, scope: str) -> str:
        """The resource of the request."""
        return request.form.get("resource", client.client_id)


class Registration(ClientRegistrationEndpoint):
    """Everybody may register."""

    def authenticate_token(self, request: Any) -> bool:
        """No token is needed."""
        return True

    def get_server_metadata(self) -> dict[str, Any]:
        """What clients may ask for."""
        return {"scopes_supported": list(SCOPES)}

    def save_client(self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any) -> Client:
        """Remember a client."""
        made = Client(client_info, client_metadata)
        clients[made.client_id] = made
        return made


def make_app(issuer: str) -> Flask:
    """The server as an application."""
    app = Flask(__name__)
    server = AuthorizationServer(app, query_client=clients.get, save_token=lambda *_: None)
    server.register_grant(CodeGrant, [CodeChallenge(required=True)])
    server.register_grant(ClientCredentialsGrant)
    server.register_token_generator("default", TokenGenerator(issuer=issuer))
    server.register_endpoint(Registration)

    @app.get("/.well-known/oauth-authorization-server")
    def metadata() -> ResponseReturnValue:
        return jsonify(
            issuer=issuer,
            authorization_endpoint=f"{issuer}/authorize",
            token_endpoint=f"{issuer}/token",
            registration_endpoint=f"{issuer}/register",
            jwks_uri=f"{issuer}/keys",
            response_types_supported=["code"],
            grant_types_supported=["authorization_code", "client_credentials"],
            code_challenge_methods_supported=["S256"],
            token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post", "none"],
            scopes_supported=list(SCOPES),
        )

    @app.get("/keys")
    def keys() -> ResponseReturnValue:
        return jsonify(KeySet([key]).as_dict(private=False))

    @app.get("/authorize")
    def authorize() -> Any:
        grant = server.get_consent_grant(end_user=User())
        return server.create_authorization_response(grant_user=User(), grant=grant)

    @app.post("/token")
    def token() -> Any:
        return server.create_token_response()

    @app.post("/register")
    def register() -> Any:
        return server.create_endpoint_response("client_registration")

    return app


if __name__ == "__main__":
    port = int(sys.argv[1])
    make_app(f"http://127.0.0.1:{port}").run("127.0.0.1", port)
