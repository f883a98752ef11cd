"""A real authorization server, and access tokens over the ordinary egress."""

import pytest

from authorization_site import CLIENT_ID, CLIENT_SECRET, AuthorizationSite
from toolcrib import Cure
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.oauth import OAuthTokens
from toolcrib.infra.oauth.access_tokens import AccessTokens, Grant
from toolcrib.infra.oauth.token_endpoint import Client
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.http_syntax import parse_hosts, parse_url


@pytest.fixture
def site():
    with AuthorizationSite() as running:
        yield running


@pytest.fixture
def client(site):
    """A client of the site, with other facts where a test names them."""

    def make(**facts):
        return Client(
            **{
                "token_url": parse_url(site.url("/token")),
                "client_id": CLIENT_ID,
                "client_secret": CLIENT_SECRET,
                "hosts": parse_hosts([site.endpoint]),
                "cure": Cure("the cure"),
                **facts,
            }
        )

    return make


@pytest.fixture
def grant(client):
    """A grant of client credentials, or of a refresh token where there is a seed."""

    def make(kind="client_credentials", seed=CLIENT_SECRET, **facts):
        return Grant(kind=kind, client=client(**facts), seed=seed)

    return make


@pytest.fixture
def open_tokens(site, tmp_path):
    """The access tokens of one process: another one of the same project where it is asked for again."""

    def make(folder=tmp_path / "data", masking=None, **facts):
        if folder is not None:
            folder.mkdir(exist_ok=True)
        return AccessTokens(
            lambda: Egress(private=[site.endpoint]), folder, Masking() if masking is None else masking, **facts
        )

    return make


@pytest.fixture
def login(site):
    """What `crib secret login` stores."""

    def make(scope="read", **facts):
        issued = site.issue(scope)
        return OAuthTokens(
            **{
                "access_token": issued.access_token,
                "refresh_token": issued.refresh_token,
                "received_at": 1.0,
                "expires_at": 2.0,
                "scope": scope,
                "token_url": site.url("/token"),
                "client_id": CLIENT_ID,
                **facts,
            }
        ).to_text()

    return make
