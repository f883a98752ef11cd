"""The endpoints that belong to no feature: calls, sessions, the overview and the pages of the API."""

from __future__ import annotations

from toolcrib.interfaces.http.call_endpoints import CALL_ENDPOINTS
from toolcrib.interfaces.http.overview_endpoints import OVERVIEW_ENDPOINTS
from toolcrib.interfaces.http.page_endpoints import PAGE_ENDPOINTS
from toolcrib.interfaces.http.session_endpoints import SESSION_ENDPOINTS

endpoints = (CALL_ENDPOINTS, SESSION_ENDPOINTS, OVERVIEW_ENDPOINTS, PAGE_ENDPOINTS)
