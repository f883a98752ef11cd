"""Keep the public hosts that were allowed on the page, beside those of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.files import ABSENT, durable, is_as_it_was, settled_stamp
from toolcrib.infra.files.locks import Locks
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.lib.http_syntax import ends_in_number, parse_hosts
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.protocols import LOCK_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.infra.files import Stamp
    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.lib.http_syntax import HostPattern

FILE = "hosts.json"
MAX_BYTES = 1_000_000


class AddedHosts:
    """The patterns in a file of the data folder, read again whenever it changes; they allow ports 80 and 443 and no address."""

    def __init__(self, data: Path | None, record: Recorder = unrecorded) -> None:
        self._data = data
        self._record = record
        self._stamp: Stamp | None = None
        self._patterns: tuple[HostPattern, ...] = ()

    def __call__(self) -> tuple[HostPattern, ...]:
        """The patterns; the same object as long as they do not change."""
        if self._data is None or is_as_it_was(str(self._data / FILE), self._stamp):
            return self._patterns
        path = self._data / FILE
        try:
            self._stamp = settled_stamp(path.stat())
        except FileNotFoundError:
            self._stamp = ABSENT
        patterns = parse_hosts(orjson.loads(durable.read(path, MAX_BYTES) or b"[]"), str(path)).patterns
        if patterns != self._patterns:
            self._patterns = patterns
        return self._patterns

    def change(self, host: str, *, allowed: bool) -> None:
        """Allow a host, or remove it again; raises ToolError for an address, a port or a malformed pattern."""
        [pattern] = parse_hosts([host]).patterns
        # A name without a dot is a domain that everybody shares, or a machine of this network.
        if pattern.port is not None or "." not in pattern.host or ends_in_number(pattern.host):
            cure = "write its name alone, such as api.example.com; the operator may open addresses and ports in toolcrib.toml"
            raise ToolError(Kind.VALIDATION, f"{host[:80]!r} is not the name of a public host", cure=cure)
        if self._data is None:
            raise ToolError(
                Kind.VALIDATION, "there is no project to keep hosts in", cure=Cure("make one with: crib init")
            )
        event = "host.allowed" if allowed else "host.removed"
        with Locks(self._data / "locks").hold("hosts", LOCK_SECONDS), self._record(event, str(pattern)):
            self._stamp = None
            hosts = {str(each) for each in self()} - {str(pattern)} | ({str(pattern)} if allowed else set())
            durable.replace(self._data / FILE, orjson.dumps(sorted(hosts), option=orjson.OPT_INDENT_2))
            self._stamp = None
