"""Services as people meet them, on this machine: shapes of APIs that recipes are made for, with credentials and pages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

ISSUES = {
    "12": {"number": 12, "title": "Door squeaks", "state": "open", "labels": [{"name": "house"}, {"name": "noise"}]}
}
PARCELS = {"7": {"place": "Bergen"}}
LOG = [{"line": f"entry {number}"} for number in range(1, 6)]


class Service(BaseHTTPRequestHandler):
    """Answers every shape by its first path segment."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        place = urlsplit(self.path)
        first, *rest = place.path.strip("/").split("/")
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        sent = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        status, kind, body = getattr(self, f"_{first}")(rest, query, sent)
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _weather(self, rest: list[str], query: dict[str, str], _: str):
        return 200, "application/json", {"current": {"city": query["q"], "temp_c": 7.5, "condition": {"text": "sunny"}}}

    def _issues(self, rest: list[str], *_: object):
        found = ISSUES.get(rest[0])
        return (200, "application/json", found) if found else (404, "application/json", {"message": "no such issue"})

    def _search(self, rest: list[str], query: dict[str, str], _: str):
        page = int(query.get("page", "1"))
        return (
            200,
            "application/json",
            {"page": page, "results": [{"title": f"{query['q']} {page}.{n}"} for n in (1, 2)]},
        )

    def _login(self, rest: list[str], query: dict[str, str], sent: str):
        form = parse_qs(sent)
        return 200, "application/json", {"welcome": form["user"][0], "language": form["lang"][0]}

    def _rates(self, rest: list[str], *_: object):
        return 200, "application/xml", f"<rates><from>{rest[0]}</from><rate day='mon'>11.25</rate></rates>"

    def _account(self, *_: object):
        given = self.headers.get("authorization")
        return (
            (200, "application/json", {"owner": "Ada"})
            if given == "Bearer s3cret-value"
            else (401, "application/json", {"error": given})
        )

    def _basic(self, *_: object):
        given = self.headers.get("authorization") == "Basic " + base64.b64encode(b"ada:pw").decode()
        return 200 if given else 401, "application/json", {"in": given}

    def _let_in(self, condition: bool):
        """An owner for one who has proved who they are, and a refusal for everybody else."""
        return (
            200 if condition else 401,
            "application/json",
            {"owner": "Ada"} if condition else {"error": "who are you?"},
        )

    def _keyed(self, rest: list[str], query: dict[str, str], _: str):
        return self._let_in("k3y" in (self.headers.get("x-maps-key"), query.get("appid")))

    def _hook(self, rest: list[str], query: dict[str, str], sent: str):
        signed = f"{self.headers.get('x-timestamp')}.{sent}".encode()
        return self._let_in(self.headers.get("x-signature") == hmac.new(b"k3y", signed, hashlib.sha256).hexdigest())

    def _message(self, *_: object):
        declared = self.headers.get("signature-input") or ""
        return self._let_in('keyid="crib"' in declared and "hmac-sha256" in declared and "signature" in self.headers)

    def _bucket(self, *_: object):
        given = self.headers.get("authorization") or ""
        return self._let_in(given.startswith("AWS4-HMAC-SHA256 Credential=k3y/") and "/eu-north-1/s3/" in given)

    def _tokens(self, rest: list[str], query: dict[str, str], sent: str):
        form = parse_qs(sent)
        given = (
            form.get("refresh_token", [""])[0] or base64.b64decode(self.headers["authorization"].split()[1]).decode()
        )
        proof = {"client_credentials": "crib:k3y", "refresh_token": "k3y"}[form["grant_type"][0]]
        answer = {"access_token": f"for-{given}", "token_type": "Bearer", "expires_in": 3600}
        return (200, "application/json", answer) if given == proof else (400, "application/json", {"error": "invalid"})

    def _staff(self, *_: object):
        return self._let_in(self.headers.get("authorization") in ("Bearer for-crib:k3y", "Bearer for-k3y"))

    def _log(self, rest: list[str], query: dict[str, str], _: str):
        """Pages of two, by a number or by a mark."""
        start = int(query["after"]) if query.get("after") else (int(query.get("page", "1")) - 1) * 2
        more = str(start + 2) if start + 2 < len(LOG) else None
        return 200, "application/json", {"found": {"entries": LOG[start : start + 2]}, "more": more}

    def _team(self, *_: object):
        people = [
            {"name": "Ada", "skills": [{"name": "math"}]},
            {"name": "Bo", "skills": [{"name": "rope"}, {"name": "sail"}]},
        ]
        return 200, "application/json", {"team": {"people": people}}

    def _orders(self, rest: list[str], query: dict[str, str], sent: str):
        order = json.loads(sent)
        return 201, "application/json", {"order": {"parcel": {"id": 7}, "count": order["count"], "gift": order["gift"]}}

    def _parcels(self, rest: list[str], *_: object):
        return 200, "application/json", PARCELS[rest[0]]

    def _quote(self, *_: object):
        return 200, "text/plain", "Well begun is half done."

    def _list(self, *_: object):
        return 200, "application/json", ["red", "green", "blue"]

    def _translate(self, rest: list[str], query: dict[str, str], _: str):
        return 200, "application/json", {"data": {"text-de": f"{query['text']} ({query['to']})", "note": "ä €"}}


@contextmanager
def services() -> Iterator[str]:
    """Run them; gives host and port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
