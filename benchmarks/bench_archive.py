"""Archives: a bundle of 1,000 tools is exported and imported, and acknowledged once it is on disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from run import show
from toolcrib import Crib
from toolcrib.features.bundles.archive import files_of, pack
from toolcrib.lib.names import new_id
from toolcrib.model.bundle import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable

TOOLS = 1_000
PUT_ONE_BY_ONE = 50
# Both together, for all tools.
SECONDS = 3.0
TOOL = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Weather report",
    "description": "Fetch the weather of a city for some days, in words",
    "type": "http",
    "isEnabled": True,
    "argSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Which city."},
            "days": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1, "description": "How many days."},
        },
        "required": ["city"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "string"},
    "impl": {
        "urlTemplate": "https://weather.example/v1?q=${city}&days=${days}&key=${WEATHER_API_KEY}",
        "headers": {"User-Agent": "MyApp/${version}"},
        "responseEncoding": "json",
        "extractExpr": "$.current.condition.text",
        "errorMode": "fail",
    },
    "tags": ["weather"],
}


async def run() -> bool:
    documents = ({**TOOL, "slug": f"weather-{number}", "version": "v1"} for number in range(TOOLS))
    bundle_id = new_id()
    data = pack(files_of(Bundle(id=bundle_id, slug="weather", display_name="Weather"), documents))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "toolcrib.toml").touch()
        async with Crib(folder) as crib:
            bundles = crib.bundles
            bundles.put_bundle(new_id(), {"slug": "first", "displayName": "First", "isEnabled": True})
            imported = _seconds(lambda: bundles.import_bundle(bundle_id, data, enable=True))
            exported = _seconds(lambda: bundles.export_bundle(bundle_id))
            other = new_id()
            bundles.put_bundle(other, {"slug": "other", "displayName": "Other", "isEnabled": True})
            put = _seconds(lambda: [bundles.put_tool(other, f"t{n}", "v1", TOOL) for n in range(PUT_ONE_BY_ONE)])
    together = imported + exported
    return show(
        f"An archive of {TOOLS} tools",
        [
            ("put, a tool", put / PUT_ONE_BY_ONE, 1.0, None),
            ("import, a tool", imported / TOOLS, imported / TOOLS / (put / PUT_ONE_BY_ONE), 1.0),
            ("export, a tool", exported / TOOLS, None, None),
            (f"both, of {SECONDS:g} s", together, together / SECONDS, 1.0),
        ],
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
