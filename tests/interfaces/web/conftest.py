"""A real browser, a real server of a project with plain and hostile tools, and a page that fails a test when anything goes wrong."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import FLAGS, SECONDS, VARIABLE, Server, Watch, find_browser, served
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import leaks

# Without it an expectation waits five seconds, however long an action may take: too little on a busy machine.
expect.set_options(timeout=SECONDS * 1000)
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SETTINGS = """
[modules]
tools = ["lab_tools", "dice"]
"""


def make_project(folder: Path) -> Path:
    """A project with the tools of the lab, and those of the sample server."""
    project = folder / "project"
    shutil.copytree(ROOT / "examples" / "server", project)
    shutil.copy(HERE / "lab.py", project / "lab_tools.py")
    (project / "toolcrib.toml").write_text(SETTINGS)
    return project


def _threads_of_playwright() -> set[leaks.Thing]:
    """Threads of the event loop that drives the browser, which starts them when it needs them and never ends them."""
    return {("thread", each.ident or 0) for each in threading.enumerate() if each.name.startswith("asyncio_")}


# One browser and one server for the tests of a file: while they live, no test of another file runs in this process, so the event
# loop that drives the browser disturbs no test.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser: install chromium, or name one in {VARIABLE}")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        if _threads_of_playwright not in leaks.HANDED_ON:
            leaks.HANDED_ON.append(_threads_of_playwright)
        yield found
        found.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    project = make_project(tmp_path_factory.mktemp("page"))
    with served(project) as found:
        found.crib("bundle", "load", str(project / "samples"))
        yield found


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server of one test alone, which may end it."""
    with served(make_project(tmp_path)) as found:
        yield found


@pytest.fixture
def watch(server: Server) -> Watch:
    return Watch(url=server.url)


@pytest.fixture
def context(browser: Browser, server: Server, watch: Watch, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    wanted = getattr(request, "param", {})
    found = browser.new_context(
        base_url=server.url,
        viewport={"width": wanted.get("width", 1440), "height": 900},
        color_scheme=wanted.get("scheme", "light"),
        locale=wanted.get("locale", "en-US"),
        reduced_motion="reduce",
    )
    found.set_default_timeout(SECONDS * 1000)
    watch.follow(found)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Iterator[Page]:
    """A page without a signed-in user; at its end nothing may have gone wrong."""
    found = context.new_page()
    yield found
    watch.check(found)


@pytest.fixture
def signed_in(page: Page, server: Server) -> Page:
    """A page whose person may do everything, approving included."""
    page.goto(server.link())
    page.get_by_role("button", name="Sign out").wait_for()
    return page
