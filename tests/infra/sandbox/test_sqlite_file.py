"""The process that holds a database open leaves it whole when it is told to end."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

from warm_python import WarmPython

PATIENCE = 30
PROGRAM = "import json, sys; from toolcrib.infra.sandbox.child.sqlite_file import serve; serve(json.loads(sys.argv[1]))"
ENDLESS = (
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) INSERT INTO a SELECT hex(zeroblob(1000)) FROM c"
)


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_signal_undoes_the_change_that_runs_and_closes_the_file(tmp_path, is_busy) -> None:
    path = tmp_path / "a.sqlite"
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE a (x)")
    database.close()
    file = {"path": str(path), "identity": [path.stat().st_dev, path.stat().st_ino], "write": True, "inspects": False}
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    with ours, theirs:
        process = WarmPython(
            [sys.executable, "-c", PROGRAM, json.dumps(file)],
            stdin=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, "TOOLCRIB_CHANNEL": "0", "TMPDIR": str(tmp_path)},
        )
        text = ENDLESS if is_busy else "INSERT INTO a VALUES (1)"
        ours.sendall(json.dumps({"text": text, "values": [], "maxBytes": 100, "writes": True}).encode() + b"\n")
        if is_busy:
            until = time.monotonic() + PATIENCE
            while not (tmp_path / "a.sqlite-wal").exists() or not (tmp_path / "a.sqlite-wal").stat().st_size:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.005)
        else:
            assert json.loads(ours.recv(1000)) == {"rows": [], "columns": None, "affected": 1}
        process.terminate()
        _, printed = process.communicate(timeout=PATIENCE)
        assert (process.returncode, printed) == (0, b"")
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.sqlite"]
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM a").fetchone() == (0 if is_busy else 1,)
    database.close()
