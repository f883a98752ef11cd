"""The file of an index: shared, deleted, broken, of another layout, and where there is no room for one."""

import logging
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.search import database as databases
from toolcrib.infra.search import tables
from toolcrib.infra.search.index import Index
from warm_python import WarmPython


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def opened(path):
    """Open the index at the path, as often as there are processes."""
    indexes: list[Index] = []

    def open_() -> Index:
        indexes.append(Index(path))
        return indexes[-1]

    yield open_
    for index in indexes:
        index.close()


def ids(hits) -> list[str]:
    return [hit.id for hit in hits]


def wait_for(condition):
    deadline = time.monotonic() + 25
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        threading.Event().wait(databases.LOOK_SECONDS / 4)


def test_processes_see_each_others_rows_at_once(opened, a_row):
    one, other = opened(), opened()
    one.put([a_row("mail", description="sommersault")])
    one.put_bundle("b9", enabled=False)
    one.note({"generation": "7"})
    assert ids(other.search("mail", limit=3)) == ["id-mail"]
    assert ids(other.search("somersault", limit=3)) == ["id-mail"]
    assert other.facts() == {"generation": "7"}
    other.put([a_row("mail", description="cartwheel")])
    assert one.search("sommersault", limit=3) == []
    assert ids(one.search("cartweel", limit=3)) == ["id-mail"]


def test_rows_without_a_key_are_seen_by_their_process_alone(opened, a_row, path):
    one, other = opened(), opened()
    one.put([a_row("shared")])
    one.set_own([a_row("mine", key="", description="a secret of this process")])
    assert ids(one.search("secret", limit=3)) == ["id-mine"]
    assert other.search("secret", limit=3) == []
    assert [row.slug for row in other.page(limit=9)] == ["shared"]
    one.close()
    other.close()
    assert b"secret" not in path.read_bytes()


def test_own_rows_that_did_not_change_cost_no_writing(opened, a_row, monkeypatch):
    index = opened()
    index.set_own([a_row(f"t{number}", key="") for number in range(5)])
    monkeypatch.setattr(index._own, "write", lambda work: pytest.fail("nothing is to be written"))
    index.set_own(a_row(f"t{number}", key="") for number in range(5))


@pytest.mark.spec("S1-70")
def test_an_index_that_is_reopened_has_everything(opened, a_row):
    first = opened()
    first.put([a_row("mail", tags=("post",))])
    first.note({"generation": "7"})
    first.close()
    second = opened()
    assert (ids(second.search("mail", limit=3)), second.count(), second.facts()) == (
        ["id-mail"],
        1,
        {"generation": "7"},
    )


@pytest.mark.spec("S1-70")
def test_a_file_that_is_deleted_while_it_is_open_is_made_anew(opened, a_row, path):
    one, other = opened(), opened()
    for index in (one, other):
        index.put([a_row("mail")])
    one.note({"generation": "7"})
    assert one.facts() == other.facts() == {"generation": "7"}
    path.unlink()
    wait_for(lambda: not one.facts())
    assert (one.count(), path.exists()) == (0, True)
    one.put([a_row("letter")])
    wait_for(lambda: ids(other.search("letter", limit=3)) == ["id-letter"])
    assert other.search("mail", limit=3) == []


def test_a_process_that_missed_that_the_file_was_deleted_does_no_harm_to_the_new_one(opened, a_row, path):
    late, one = opened(), opened()
    for index in (late, one):
        index.put([a_row("mail")])
    path.unlink()
    wait_for(lambda: one.count() == 0)
    one.put([a_row("letter")])
    late.close()
    assert path.with_name("index.db-wal").exists()
    assert ids(opened().search("letter", limit=3)) == ["id-letter"]


def test_a_file_without_its_log_is_made_anew(opened, a_row, path, caplog):
    one, other = opened(), opened()
    one.put([a_row("mail")])
    other.note({"generation": "7"})
    path.with_name("index.db-wal").unlink()
    wait_for(lambda: not one.facts())
    one.put([a_row("letter")])
    wait_for(lambda: ids(other.search("letter", limit=3)) == ["id-letter"])
    assert other.search("mail", limit=3) == []
    assert "its log is gone" in caplog.text


@pytest.mark.parametrize("content", [b"", b"no database at all" * 500, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_broken_file_is_made_anew(opened, a_row, path, content, caplog):
    path.write_bytes(content)
    index = opened()
    with caplog.at_level(logging.WARNING):
        assert index.facts() == {}
    index.put([a_row("mail")])
    assert ids(opened().search("mail", limit=3)) == ["id-mail"]
    assert ("made anew" in caplog.text) == bool(content)


def test_a_file_that_breaks_while_it_is_open_is_made_anew(opened, a_row, path):
    index = opened()
    index.put(a_row(f"mail-{number}", description="words " * 50) for number in range(300))
    index.note({"generation": "7"})
    index.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 8192))
    index = opened()
    index.search("mail", limit=500)
    index.ask("mail words", limit=500)
    index.page(limit=500)
    index.put([a_row("mail")])
    assert "id-mail" in ids(index.search("mail", limit=500))


def test_a_file_of_another_layout_is_made_anew(opened, a_row, path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE rows (other TEXT)")
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    index = opened()
    assert (index.facts(), index.count()) == ({}, 0)
    index.put([a_row("mail")])
    assert index.count() == 1


def test_a_lost_table_is_no_reason_to_fail(opened, a_row, path):
    index = opened()
    index.put([a_row("mail")])
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE texts")
    connection.close()
    assert index.ask("mail", limit=3) == []
    index.put([a_row("letter")])
    assert ids(index.ask("letter", limit=3)) == ["id-letter"]


def test_where_no_file_can_be_the_index_is_kept_in_memory(tmp_path, a_row, caplog):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "index.db", tmp_path / "folder"):
        caplog.clear()
        index = Index(path)
        index.put([a_row("mail")])
        assert ids(index.search("mail", limit=3)) == ["id-mail"]
        assert "the index is kept in memory" in caplog.text
        assert str(path) in caplog.text
        index.close()


FULL_DISK = """
import logging, resource, sys
from pathlib import Path
from toolcrib.infra.search import Row
from toolcrib.infra.search.index import Index

logging.basicConfig(level=logging.WARNING)
index = Index(Path(sys.argv[1]))
index.put([Row(id="0", bundle="b", slug="first", version="1", key="k")])
index.note({"generation": "1"})
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
rows = [Row(id=str(n), bundle="b", slug=f"mail-{n}", version="1", key=str(n), description="text " * 40) for n in range(1, 2000)]
index.put(rows)
print(len(index.search("mail", limit=5000)), dict(index.facts()))
"""


def test_a_full_disk_moves_the_index_into_memory(path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.stdout, done.returncode) == ("1999 {}\n", 0), done.stderr
    assert "the index is kept in memory" in done.stderr


def test_an_index_that_another_process_keeps_busy_says_so(opened, a_row, path, monkeypatch):
    monkeypatch.setattr(databases, "BUSY_SECONDS", 0.05)
    index = opened()
    index.put([a_row("mail")])
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert ids(index.search("mail", limit=3)) == ["id-mail"]
    with pytest.raises(ToolError, match="another process keeps the index busy; try again") as caught:
        index.put([a_row("letter")])
    assert caught.value.kind is Kind.TRANSIENT
    holder.execute("ROLLBACK")
    holder.close()
    index.put([a_row("letter")])
    assert index.count() == 2


WRITER = """
import sys
from pathlib import Path
from toolcrib.infra.search import Row
from toolcrib.infra.search.index import Index

index = Index(Path(sys.argv[1]))
for step in range(25):
    slug = f"mail-{sys.argv[2]}-{step}"
    index.put([Row(id=slug, bundle="b", slug=slug, version="1", key=slug, modified_at="2026-03-01T10:00:00.000Z")])
    assert [hit.id for hit in index.search(slug, limit=1)] == [slug]
index.close()
"""


def test_processes_open_and_fill_one_file_at_once(path):
    writers = [WarmPython([sys.executable, "-c", WRITER, path, str(number)]) for number in range(5)]
    assert [writer.wait(50) for writer in writers] == [0] * 5
    index = Index(path)
    hits = index.search("mail", limit=500)
    assert (index.count(), len(hits)) == (125, 125)
    assert ids(hits) == sorted(ids(hits))
    index.close()


def test_a_put_that_fails_changes_nothing(opened, a_row):
    index = opened()
    index.put([a_row("mail")])

    def rows():
        yield a_row("letter")
        raise RuntimeError("the reader of documents broke")

    with pytest.raises(RuntimeError, match="the reader of documents broke"):
        index.put(rows())
    assert [row.slug for row in index.page(limit=9)] == ["mail"]
    index.put([a_row("parcel")])
    assert index.count() == 2


def test_a_change_of_switches_leaves_the_words_alone(opened, a_row, path):
    index = opened()
    index.put([a_row("mail", enabled=True)])
    connection = sqlite3.connect(path)
    before = connection.execute("SELECT count(*) FROM words_data").fetchone()
    index.put([a_row("mail", enabled=False, stamp="2", problem="x")])
    assert connection.execute("SELECT count(*) FROM words_data").fetchone() == before
    connection.close()
    assert (index.search("mail", limit=3), index.get("id-mail").stamp) == ([], "2")


def test_nothing_is_left_of_rows_that_are_gone(opened, a_row, path):
    index = opened()
    for step in range(5):
        index.put(a_row(f"mail-{number}", description=f"word{step}", tags=(f"tag{step}",)) for number in range(20))
    index.remove([f"id-mail-{number}" for number in range(20)])
    connection = sqlite3.connect(path)
    for table in ("rows", "tags", "words_content", "texts_content"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    assert connection.execute("SELECT max(rows), min(rows) FROM stems").fetchone() == (0, 0)
    connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    connection.execute("INSERT INTO texts (texts) VALUES ('integrity-check')")
    connection.close()


def test_the_index_is_for_the_eyes_of_its_owner(tmp_path, a_row):
    path = tmp_path / "made" / "index.db"
    index = Index(path)
    index.put([a_row("mail")])
    assert path.parent.stat().st_mode & 0o077 == 0
    index.close()


@pytest.mark.spec("S1-83")
def test_where_sqlite_lacks_full_text_search_every_row_in_memory_is_looked_at(path, a_row, monkeypatch):
    class Lacking(sqlite3.Connection):
        def execute(self, statement, *parameters):
            if "fts5" in statement:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(statement, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, **options, factory=Lacking))
    index = Index(path)
    index.put(a_row(f"{slug}-{number}") for slug in ("send-mail", "mail", "mial") for number in range(2))
    assert ids(index.search("mail", limit=9)) == [
        "id-mail-0",
        "id-mail-1",
        "id-send-mail-0",
        "id-send-mail-1",
        "id-mial-0",
        "id-mial-1",
    ]
    assert ids(index.ask("how do I send something", limit=9)) == ["id-send-mail-0", "id-send-mail-1"]
    assert not path.exists()
    index.close()


def test_very_many_rows_are_put_without_full_text_search(a_row, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK", 10)
    index = Index(None, full_text=False)
    index.put(a_row(f"mail-{number}") for number in range(25))
    assert len(index.search("mail", limit=50)) == 25
    index.close()


def test_importing_the_search_loads_no_library_for_slips():
    code = "import sys, toolcrib.infra.search.index; print('rapidfuzz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "False\n"
