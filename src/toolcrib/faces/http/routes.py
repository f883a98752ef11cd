"""Every path there is, and what answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.crib.tokens import Scope
from toolcrib.faces.http.asking import Asking
from toolcrib.faces.http.bundles import BundleDesk
from toolcrib.faces.http.invoking import CallDesk
from toolcrib.faces.http.overview import OverviewDesk
from toolcrib.faces.http.pages import PageDesk
from toolcrib.faces.http.requests import RequestDesk
from toolcrib.faces.http.routing import Endpoint, Route
from toolcrib.faces.http.sessions import SessionDesk
from toolcrib.faces.http.tools import ToolDesk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.crib import Crib
    from toolcrib.faces.http.routing import Handle
    from toolcrib.faces.http.service import Service
    from toolcrib.faces.http.threads import Threads

BUNDLES = "/tools/bundles"
BUNDLE = f"{BUNDLES}/{{bundleID}}"
TOOL = f"{BUNDLE}/tools/{{toolSlug}}/version/{{version}}"
# The document's paths are relative to /tools, and its own first word may be part of them or not.
LISTS = ("/tools", "/tools/tools")
REQUEST = "/requests/{requestID}"


def all_routes(crib: Crib, threads: Threads, service: Service, *, needs_token: bool) -> Iterator[Route]:
    """The routes of a crib."""
    body_bytes = crib.settings.http_body_bytes
    sessions, asking = SessionDesk(crib, body_bytes), Asking(threads)
    calls = CallDesk(crib, sessions, service, body_bytes)
    yield from _bundles(BundleDesk(crib.bundles, threads, body_bytes))
    yield from _tools(ToolDesk(crib.bundles, crib.wish_from_search, threads, body_bytes), calls)
    yield from _calls(calls, sessions)
    yield from _requests(RequestDesk(crib, threads, asking, service))
    yield from _overview(OverviewDesk(crib, threads, asking, service), PageDesk(service, needs_token=needs_token))


def _bundles(desk: BundleDesk) -> Iterator[Route]:
    yield Route(path=BUNDLES, endpoints={"GET": _read(desk.list)})
    yield Route(
        path=BUNDLE,
        endpoints={
            "GET": _read(desk.read),
            "PUT": _manage(desk.put),
            "PATCH": _manage(desk.switch),
            "DELETE": _manage(desk.delete),
        },
    )


def _tools(desk: ToolDesk, calls: CallDesk) -> Iterator[Route]:
    for path in LISTS:
        yield Route(path=path, endpoints={"GET": _read(desk.list)})
        yield Route(path=f"{path}/search", endpoints={"GET": _read(desk.search)})
    yield Route(path=f"{BUNDLE}/tools", endpoints={"GET": _read(desk.list_one)})
    yield Route(
        path=TOOL,
        endpoints={
            "GET": _read(desk.read),
            "PUT": _manage(desk.put),
            "PATCH": _manage(desk.switch),
            "DELETE": _manage(desk.delete),
            "POST": _call(calls.invoke),
        },
    )
    yield Route(path=f"{TOOL}/invoke", endpoints={"POST": _call(calls.invoke)})


def _calls(calls: CallDesk, sessions: SessionDesk) -> Iterator[Route]:
    yield Route(path="/crib/call", endpoints={"POST": _call(calls.call)})
    yield Route(path="/crib/explain", endpoints={"POST": _invoke(calls.explain)})
    yield Route(path="/crib/sessions", endpoints={"POST": _invoke(sessions.open)})
    yield Route(
        path="/crib/sessions/{sessionID}",
        endpoints={"GET": _invoke(sessions.read), "DELETE": _invoke(sessions.close)},
    )
    yield Route(path="/crib/sessions/{sessionID}/turn", endpoints={"POST": _invoke(sessions.next_turn)})


def _requests(desk: RequestDesk) -> Iterator[Route]:
    yield Route(path="/requests", endpoints={"GET": _read(desk.list), "POST": _invoke(desk.file)})
    yield Route(path=REQUEST, endpoints={"GET": _read(desk.read)})
    yield Route(path=f"{REQUEST}/history", endpoints={"GET": _read(desk.history)})
    yield Route(path=f"{REQUEST}/events", endpoints={"GET": _read(desk.events)})
    yield Route(path=f"{REQUEST}/deliver", endpoints={"POST": _manage(desk.deliver)})
    yield Route(path=f"{REQUEST}/cancel", endpoints={"POST": _manage(desk.cancel)})
    yield Route(path=f"{REQUEST}/retry", endpoints={"POST": _manage(desk.retry)})
    yield Route(path=f"{REQUEST}/allowance", endpoints={"PUT": _manage(desk.allow)})
    yield Route(path="/experiments", endpoints={"GET": _read(desk.experiments)})


def _overview(desk: OverviewDesk, pages: PageDesk) -> Iterator[Route]:
    yield Route(path="/crib/tools", endpoints={"GET": _read(desk.tools)})
    yield Route(path="/crib/results/{handle}", endpoints={"GET": _invoke(desk.result)})
    yield Route(path="/crib/health", endpoints={"GET": _read(desk.health)})
    yield Route(path="/openapi.json", endpoints={"GET": _read(pages.openapi)})
    yield Route(path="/docs", endpoints={"GET": _read(pages.docs)})
    yield Route(path="/metrics", endpoints={"GET": _read(pages.metrics)})
    yield Route(path="/healthz", endpoints={"GET": Endpoint(handle=pages.alive, scope=None)})
    yield Route(path="/readyz", endpoints={"GET": Endpoint(handle=pages.ready, scope=None)})


def _read(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.READ)


def _manage(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.MANAGE)


def _invoke(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.INVOKE)


def _call(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.INVOKE, is_call=True)
