"""Drive the web page in a real browser: where a browser is, a server of a project, and a page that notes what goes wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

# Names that Debian, other systems and vendors give it; the variable names one that lies elsewhere.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "PAGE_BROWSER"
# Set by the judge: where axe-core lies, and where pictures go.
AXE, SCREENSHOTS = "PAGE_AXE", "PAGE_SCREENSHOTS"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
SECONDS = 60
WATCH_POLICY = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.__violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def find_browser() -> str | None:
    """The program of a Chromium; None if there is none."""
    return os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, PROGRAMS)), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A running `crib serve`: its URL, the project, and a link that signs in once."""

    url: str
    project: Path
    process: subprocess.Popen[str]

    def crib(self, *words: str, stdin: str = "") -> str:
        """What a command prints in the project."""
        done = subprocess.run(
            [sys.executable, "-m", "toolcrib", *words, "-C", str(self.project)],
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS * 2,
        )
        return done.stdout.strip()

    def link(self) -> str:
        """A link that signs a person in once."""
        return self.crib("page", "--at", self.url)


@contextmanager
def served(project: Path, port: int = 0) -> Iterator[Server]:
    """Run `crib serve` in the project, on a free port."""
    words = [sys.executable, "-m", "toolcrib", "serve", "-C", str(project), "--port", str(port)]
    log = project.parent / "serve.log"
    with log.open("w") as errors, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        try:
            line = process.stdout.readline()
            if " on http" not in line:
                raise RuntimeError(f"the server did not start: {line}{log.read_text()}")
            yield Server(url=line.rpartition(" on ")[2].strip(), project=project, process=process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass(kw_only=True)
class Watch:
    """Notes console errors, requests that leave the server, and violations of the policy."""

    url: str
    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, *words: str) -> None:
        """Pass over console errors with these words: a refusal that a test provokes is logged by the browser itself."""
        self.expected.extend(words)

    def follow(self, context: BrowserContext) -> None:
        """Watch every page of a context."""
        context.add_init_script(WATCH_POLICY)
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.problems.append(f"uncaught: {error.error}"))
        context.on("request", self._see)

    def check(self, page: Page) -> None:
        """Raise AssertionError if anything went wrong."""
        if not page.is_closed():
            self.problems += [f"policy: {found}" for found in page.evaluate("window.__violations ?? []")]
        if self.problems:
            raise AssertionError("\n".join(self.problems))

    def _hear(self, message: ConsoleMessage) -> None:
        text = message.text
        if message.type in ("error", "warning") and not any(word in text for word in self.expected):
            self.problems.append(f"console: {text} ({message.location.get('url', '')})")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.problems.append(f"foreign request: {request.url}")
