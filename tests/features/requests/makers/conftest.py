"""Tasks as a Builder lays them out, and what the makers of a project are made of."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from tool_requests import request_of
from toolcrib.features.requests.command_maker import CommandMaker
from toolcrib.features.requests.workspace import write_workspace
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.programs.executables import Executables
from toolcrib.infra.sandbox.jobs import MEGABYTE, WorkspacePolicy
from toolcrib.model.protocols import MakerTask

REQUEST = """\
tool_request:
  id: req_20240115_001
  name: word_counter
  description: "Count the words of a text"
  priority: high
  requested_by: fullsend
  experiment_blocked: exp_words
  inputs:
    - name: text
      type: string
      description: "What to count in"
      required: true
  outputs:
    - name: words
      type: integer
  requirements:
    - Must count words in any alphabet
"""
CONTRACT = "def test_nothing():\n    pass\n"


@pytest.fixture
def wanted():
    return request_of(REQUEST)


class Office:
    """A project in which a Builder works, and a folder of the operator's beside it."""

    def __init__(self, place, sandbox, wanted):
        self.project = place / "project"
        self.workspace = self.project / "work"
        self.home = place / "home"
        self.operator = place / "operator"
        self.building = self.project / ".toolcrib" / "building" / "req_20240115_001"
        for folder in (self.workspace, self.home, self.operator):
            folder.mkdir(parents=True)
        self.sandbox = sandbox
        self.request = wanted
        self.said = []
        self.egress = Egress()
        self.variables = {}

    def task(self, *, seconds=30.0, attempt=1, complaints=(), say=None, contract_tests=CONTRACT):
        brief = write_workspace(
            self.building, self.request, contract_tests=contract_tests, complaints=complaints, attempt=attempt
        )
        return MakerTask(
            request=self.request,
            folder=self.building,
            brief=brief,
            attempt=attempt,
            complaints=tuple(complaints),
            deadline=time.monotonic() + seconds,
            say=say or self.said.append,
        )

    def find(self, command):
        """Where the operator's programs lie: on their search path, or where they say."""
        own = [str(Path(command).parent)] if command.startswith("/") else []
        places = os.pathsep.join([os.environ["PATH"], *own])
        return Executables(places, (self.project,), self.workspace).installed(command)

    def maker(self, *command, disk_bytes=50 * MEGABYTE, processes=64, **more):
        return CommandMaker(
            self.sandbox,
            WorkspacePolicy(workspace=self.workspace, processes=processes),
            command=command,
            find=self.find,
            egress=lambda: self.egress,
            project=(self.project, self.workspace),
            hidden=(self.home,),
            variable=self.variables.get,
            disk_bytes=disk_bytes,
            **more,
        )

    def script(self, code, name="maker.py", folder=None):
        """A program of the operator's, written in Python."""
        path = (folder or self.operator) / name
        path.write_text(code)
        return str(path)


@pytest.fixture
async def office(tmp_path, sandbox, wanted):
    office = Office(tmp_path, sandbox, wanted)
    yield office
    await office.egress.close()


@pytest.fixture
async def page():
    """A page that says hello, and what it was asked for."""

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        answer.heard.append(head.split()[1].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    answer.heard = []
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    answer.port = server.sockets[0].getsockname()[1]
    yield answer
    server.close()
    await server.wait_closed()
