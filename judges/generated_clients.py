"""Generate clients from the OpenAPI document of a live server, in Python and in TypeScript, and call tools with them.

`python judges/generated_clients.py`: the packages of npm are found in `.judges/generated-clients`. Warnings of a generator fail too,
but for media types that it does not know.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".judges" / "generated-clients"
PROGRAM = ROOT / "judges" / "generated_clients.ts"
SECONDS = 60
SUM = 42
ADD = 'def add(first: int, second: int) -> int:\n    """Add two numbers."""\n    return first + second\n'
# Archives and YAML are sent as bytes and text; the generator knows no other way to be told so.
CONFIG = "content_type_overrides:\n  application/zip: application/octet-stream\n  application/yaml: application/octet-stream\n"
TYPES = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "skipLibCheck": True,
    "target": "es2022",
    "lib": ["es2022", "dom"],
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": [],
    "outDir": "built",
}


@contextmanager
def served(project: Path) -> Iterator[tuple[str, str]]:
    """A server of the project, and a token of it."""
    program = [sys.executable, "-m", "toolcrib"]
    token = subprocess.check_output(
        [*program, "token", "create", "judge", "--scope", "read", "--scope", "invoke", "-C", str(project)], text=True
    ).strip()
    command = [*program, "serve", "--port", "0", "-C", str(project)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield str(server.stdout and server.stdout.readline()).split()[-1], token
        finally:
            server.terminate()


def judge_python(folder: Path, url: str, token: str) -> list[str]:
    """What is wrong with the Python client."""
    (folder / "config.yaml").write_text(CONFIG)
    words = ["openapi-python-client", "generate", "--path", "openapi.json", "--config", "config.yaml"]
    made = subprocess.run(
        [*words, "--meta", "none", "--output-path", "python_client"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = made.stdout + made.stderr
    if made.returncode or "WARNING" in said:
        return [f"openapi-python-client ended with {made.returncode}: {said[:2_000]}"]
    sys.path.insert(0, str(folder))
    load = importlib.import_module
    client = load("python_client").AuthenticatedClient(base_url=url, token=token)
    call, arguments = load("python_client.api.calls.call_tool"), load("python_client.models").Arguments
    tools = load("python_client.api.overview.describe_tools")
    sessions = load("python_client.api.calls.open_session")
    body = load("python_client.models").SessionBody.from_dict({"maxCalls": 1})
    called = call.sync("add", client=client, body=arguments.from_dict({"first": 2, "second": 40}))
    found = tools.sync(client=client, offered=True, names=["add"])
    session = sessions.sync(client=client, body=body)
    one = arguments.from_dict({"first": 1, "second": 1})
    counted: list[Any] = [
        call.sync_detailed("add", client=client, body=one, toolcrib_session=session.id) for _ in range(2)
    ]
    refused = call.sync_detailed("nobody", client=client)
    checks = {
        "a tool is called by its name": called.ok is True and called.value == SUM,
        "tools are listed": [tool.name for tool in found.tools] == ["add"],
        "a session counts calls": counted[0].parsed.ok is True and str(counted[1].parsed.kind) == "BUDGET_EXCEEDED",
        "a refusal has a kind": (refused.status_code, str(refused.parsed.kind)) == (404, "NOT_FOUND"),
    }
    for what, holds in checks.items():
        print(f"python: {what}: {'fine' if holds else 'WRONG'}")
    return [f"python: {what}" for what, holds in checks.items() if not holds]


def judge_typescript(folder: Path, url: str, token: str) -> list[str]:
    """What is wrong with the TypeScript client."""
    shutil.copy(PROGRAM, folder / "client.ts")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": TYPES, "files": ["client.ts"]}))
    (folder / "node_modules").symlink_to(PLACE / "node_modules")
    steps = (
        ["openapi-typescript", "openapi.json", "-o", "schema.d.ts"],
        ["tsc", "-p", "."],
        ["node", "built/client.js", url, token],
    )
    for step in steps:
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        print(done.stdout[:2_000])
        if done.returncode:
            return [f"{step[0]} ended with {done.returncode}: {done.stdout[:2_000]}{done.stderr[:2_000]}"]
    return []


def main() -> int:
    """Judge both; how many things are wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder, project = Path(place), Path(place) / "project"
        (project / "tools").mkdir(parents=True)
        (project / "toolcrib.toml").write_text("")
        (project / "tools" / "add.py").write_text(ADD)
        with served(project) as (url, token):
            asked = Request(f"{url}/openapi.json", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own server
            with urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310 - see above
                (folder / "openapi.json").write_bytes(answer.read())
            wrong = [*judge_python(folder, url, token), *judge_typescript(folder, url, token)]
    print("\n".join(wrong) or "both clients call tools")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
