"""A process that renews the token of a login: ENDPOINT FOLDER SEED; waits for a line before it does, and prints the token."""

import asyncio
import sys
from pathlib import Path

from toolcrib import Cure
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.oauth.access_tokens import AccessTokens, Grant
from toolcrib.infra.oauth.token_endpoint import Client
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.http_syntax import parse_hosts, parse_url

endpoint, folder, seed = sys.argv[1:]
client = Client(
    token_url=parse_url(f"http://{endpoint}/token"),
    client_id="crib: 1",
    client_secret="client+secret/%&ü-7f3a",
    hosts=parse_hosts([endpoint]),
    cure=Cure("the cure"),
)
grant = Grant(kind="authorization_code", client=client, seed=Path(seed).read_text(encoding="utf-8"))
tokens = AccessTokens(lambda: Egress(private=[endpoint]), Path(folder), Masking())
print("ready", flush=True)
sys.stdin.readline()
print(asyncio.run(tokens.get(grant, seconds=20)))
