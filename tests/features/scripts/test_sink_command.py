"""`crib sink`: lines of standard input become events."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from toolcrib.__main__ import main
from toolcrib.toolkit.cli import ExitCode

FIXTURE = Path(__file__).parents[2] / "seeds" / "fixtures" / "ai_tools" / "sinks" / "file_sink.py"


@pytest.fixture
def project(tmp_path):
    sinks = tmp_path / "project" / ".ai" / "tools" / "sinks"
    sinks.mkdir(parents=True)
    shutil.copy(FIXTURE, sinks)
    return tmp_path / "project"


@pytest.fixture
def feed(project, monkeypatch, tmp_path):
    """Run the command with these bytes on its standard input: a plain file, or with `pipe` pieces of a pipe."""

    def run(*words, data=b"", pipe=()):
        if pipe:
            reading, writing = os.pipe()
            threading.Thread(target=write_all, args=(writing, pipe)).start()
            stream = os.fdopen(reading, "rb")
        else:
            (tmp_path / "input").write_bytes(data)
            stream = (tmp_path / "input").open("rb")
        with stream:
            monkeypatch.setattr("sys.stdin", stream)
            return main(["sink", *words, "-C", str(project)])

    return run


def write_all(descriptor, pieces):
    with os.fdopen(descriptor, "wb", buffering=0) as stream:
        for piece in pieces:
            stream.write(piece)


@pytest.mark.spec("S3-42")
def test_lines_of_a_file_become_events(feed, project, capsys):
    assert feed("file_sink", "path=log.jsonl", data=b'{"a":1}\nwords\n\n"last"') == ExitCode.DONE
    assert (project / "log.jsonl").read_text() == '{"a": 1}\nwords\n\n"last"\n'
    assert capsys.readouterr().err.endswith("crib: events written: 4\n")


@pytest.mark.spec("S3-66")
def test_in_another_format_lines_reach_the_file_to_the_letter(feed, project):
    lines = ['{"a":1}', '  {"b" :2} ', "", " ", "words\tand\u2028Köln \U0001f600 ", '"quoted"', "\\n"]
    data = "\n".join(lines).encode()
    assert feed("file_sink", "path=log.txt", "format=text", data=data) == ExitCode.DONE
    assert (project / "log.txt").read_bytes() == data + b"\n"


def test_lines_are_taken_from_a_pipe_in_pieces_of_any_size(feed, project):
    lines = [json.dumps({"number": number, "text": "ö" * 50}).encode() + b"\n" for number in range(3_000)]
    text = b"".join(lines)
    pieces = [text[start : start + 777] for start in range(0, len(text), 777)]
    assert feed("file_sink", "path=log", "format=text", pipe=pieces) == ExitCode.DONE
    assert (project / "log").read_bytes() == text


def test_arguments_are_read_by_the_schema_of_the_class(feed, project, capsys):
    assert feed("file-sink", "path=log", "flush_every=5", data=b"x") == ExitCode.DONE
    assert feed("file-sink", "path=log", "flush_every=often", data=b"x") == ExitCode.FAILED
    assert "flush_every" in capsys.readouterr().err


def test_an_unknown_tool_has_its_own_exit_code(feed, capsys):
    assert feed("file_sinc", "path=log") == ExitCode.UNKNOWN_TOOL
    assert "file_sink" in capsys.readouterr().err


def test_a_tool_that_is_no_sink_says_how_to_call_it(feed, capsys):
    assert feed("read_file", "path=log") == ExitCode.FAILED
    assert "read_file is not a sink; call it with: crib call read_file" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_refused_by_their_line(feed, project, capsys):
    assert feed("file_sink", "path=log", "format=text", data=b"one\ntwo\n\xff\nfour") == ExitCode.FAILED
    assert "standard input, line 3: this is not UTF-8 text (byte 0)" in capsys.readouterr().err
    assert (project / "log").read_text() == "one\ntwo\n"


def test_a_line_without_end_is_refused(feed, capsys):
    assert feed("file_sink", "path=log", data=b"one\n" + b"x" * 9_000_000) == ExitCode.FAILED
    assert "standard input, line 2: a line is longer than" in capsys.readouterr().err


def test_settings_and_tools_are_no_place_for_events(feed, project, capsys):
    (project / "toolcrib.toml").write_text("")
    assert feed("file_sink", "path=toolcrib.toml", data=b"grants.'*' = ['*']") == ExitCode.FAILED
    assert "protected" in capsys.readouterr().err
    assert (project / "toolcrib.toml").read_text() == ""


def test_without_a_name_the_command_says_how_it_is_written(feed, capsys):
    assert feed() == ExitCode.WRONG_USE
    assert "name a sink: crib sink NAME key=value" in capsys.readouterr().err


def test_closed_standard_input_is_told(project, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["sink", "file_sink", "-C", str(project)]) == ExitCode.WRONG_USE
    assert "the events come from standard input, which is closed" in capsys.readouterr().err
