import asyncio
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolcrib import Kind, Limits, RetryPolicy, ToolError
from toolcrib.features.scripts.container import Containers
from toolcrib.infra.programs.executables import Executables

USER = f"{os.getuid()}:{os.getgid()}"
# Tells what it was started with; a removal fails, so that the operator is told about it.
ENGINE = """#!/usr/bin/env python
import json, os, sys, time
words = sys.argv[1:]
if words[0] == "rm":
    sys.exit("asked to " + " ".join(words))
if "absent" in words:
    print("Unable to find image 'absent' locally", file=sys.stderr)
    sys.exit(125)
if any(word.startswith("slow") for word in words):
    time.sleep(60)
print(json.dumps({"words": words, "variables": dict(os.environ)}))
"""


@pytest.fixture
def engine(bench, tmp_path):
    """A stand-in for the engine, and what it noted down."""
    place = tmp_path / "engine"
    place.mkdir()
    (place / "docker").write_text(ENGINE)
    (place / "docker").chmod(0o755)
    bench.search_path = str(place)
    return place


def container(bench, *, requires=(), **more):
    config = {"image": "python:3.11", **more.pop("config", {})}
    return bench.tool(executor="docker", kind="docker", config=config, requires=requires, **more)


def job_of(bench, tool, **arguments):
    order = bench.runner.bind(tool)._order(arguments, "call-1", "ann")
    return Containers(Executables(bench.search_path), bench.workspace_policy).job(order)


def closed_walls(bench, name):
    return [
        *("run", "--rm", "--name", name, "--pull", "never", "--network", "none", "--read-only", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--pids-limit", "64", "--memory", "1024000000b", "--cpus", "1"),
        *("--tmpfs", "/tmp:size=256000000,mode=1777", "--user", USER),
        *("--mount", f"type=bind,source={bench.folder},target=/tool,readonly"),
    ]


@pytest.mark.spec("S3-31", "S3-61")
def test_the_whole_command_line(bench, engine):
    bench.variables["sample", "KUBECONFIG"] = "secret-path"
    config = {"command": "python", "entrypoint": "/app/deploy.py", "args": ["--fast"], "env": ["KUBECONFIG"]}
    job, removal = job_of(bench, container(bench, config=config, action="deploy"), name="-x", force=True)
    name = job.argv[job.argv.index("--name") + 1]
    interpreter, program, *words = job.argv
    assert interpreter == sys.executable
    assert program == str(engine / "docker")
    assert words == [
        *closed_walls(bench, name),
        *("--workdir", "/tool", "--env", "KUBECONFIG", "--entrypoint", "/app/deploy.py", "python:3.11"),
        *("python", "--fast", "deploy", "--name=-x", "--force"),
    ]
    assert job.environment["KUBECONFIG"] == "secret-path"
    assert "secret-path" not in " ".join(job.argv)
    assert removal.argv[1:] == (str(engine / "docker"), "rm", "--force", name)
    assert "KUBECONFIG" not in removal.environment


def test_each_container_has_a_name_of_its_own(bench, engine):
    tool = container(bench)
    assert job_of(bench, tool)[1].argv != job_of(bench, tool)[1].argv


def mounts_of(job):
    return [word for before, word in zip(job.argv, job.argv[1:], strict=False) if before == "--mount"][1:]


def test_the_workspace_is_mounted_as_far_as_the_tool_declares(bench, engine):
    assert mounts_of(job_of(bench, container(bench))[0]) == []
    reading = mounts_of(job_of(bench, container(bench, requires={"fs.read"}))[0])
    assert reading == [f"type=bind,source={bench.workspace},target=/workspace,readonly"]
    bench.limit(opened=("*",))
    writing = mounts_of(job_of(bench, container(bench, requires={"fs.read", "fs.write"}))[0])
    assert writing == [f"type=bind,source={bench.workspace},target=/workspace"]


def test_a_container_that_may_write_declares_that_it_reads(bench, engine):
    """The mount can be read: a rule about private data, and a grant of fs.write alone, would not know."""
    bench.limit(opened=("*",))
    with pytest.raises(ToolError, match=r"can read it too; list fs\.read in its requires") as caught:
        bench.check(container(bench, requires={"fs.write"}))
    assert caught.value.details["missing"] == ["fs.read"]


def test_what_is_closed_or_fixed_stays_so_in_the_container(bench, engine):
    closed, secret, fixed = (bench.workspace / name for name in (".toolcrib", "key", "tools"))
    closed.mkdir()
    secret.touch()
    fixed.mkdir()
    bench.limit(opened=("*",), closed=(closed, secret, Path("/elsewhere")), fixed=(fixed, Path("/elsewhere")))
    assert mounts_of(job_of(bench, container(bench, requires={"fs.read", "fs.write"}))[0])[1:] == [
        "type=tmpfs,target=/workspace/.toolcrib,tmpfs-size=4096,tmpfs-mode=0555",
        "type=bind,source=/dev/null,target=/workspace/key,readonly",
        f"type=bind,source={fixed},target=/workspace/tools,readonly",
    ]


@pytest.mark.parametrize("what", ["closed", "fixed"])
def test_a_container_cannot_make_what_no_tool_may_write(bench, engine, what):
    bench.limit(opened=("*",), **{what: (bench.workspace / "toolcrib.toml",)})
    with pytest.raises(ToolError, match=r"could make toolcrib\.toml") as caught:
        job_of(bench, container(bench, requires={"fs.read", "fs.write"}))
    assert caught.value.kind is Kind.BLOCKED
    assert job_of(bench, container(bench, requires={"fs.read"}))


def test_a_container_writes_to_no_workspace_whose_names_are_protected(bench, engine):
    with pytest.raises(ToolError, match=r"no name is protected from a container .* workspace.open") as caught:
        bench.check(container(bench, requires={"fs.write"}))
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


def test_a_container_sees_no_secret(bench, engine):
    for name in (".env", "sub/.ssh/key", ".toolcrib/key", "code.py"):
        (bench.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.workspace / name).touch()
    bench.limit(closed=(bench.workspace / ".toolcrib",))
    assert mounts_of(job_of(bench, container(bench, requires={"fs.read"}))[0])[1:] == [
        "type=tmpfs,target=/workspace/.toolcrib,tmpfs-size=4096,tmpfs-mode=0555",
        "type=bind,source=/dev/null,target=/workspace/.env,readonly",
        "type=tmpfs,target=/workspace/sub/.ssh,tmpfs-size=4096,tmpfs-mode=0555",
    ]


@pytest.mark.parametrize("capability", ["net.http", "net.call"])
def test_a_container_with_a_network_is_refused_plainly(bench, engine, capability):
    with pytest.raises(ToolError, match="containers have no network.*guarded proxy") as caught:
        bench.check(container(bench, requires={capability}))
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


@pytest.mark.parametrize(
    "name", ["DOCKER_HOST", "CONTAINER_HOST", "LD_PRELOAD", "PATH", "https_proxy", "XDG_RUNTIME_DIR"]
)
def test_a_variable_that_the_engine_would_obey_is_refused(bench, engine, name):
    with pytest.raises(ToolError, match=f"the container engine itself obeys {name}"):
        bench.check(container(bench, config={"env": {name: "tcp://evil.example"}}))


@pytest.mark.parametrize("image", [None, "", "--privileged", "-v/:/host", "a b", "a\nb", 5])
def test_an_image_that_is_no_name_is_refused(bench, engine, image):
    with pytest.raises(ToolError, match=r"config\.image: write the name of an image") as caught:
        bench.check(container(bench, config={"image": image}))
    assert caught.value.kind is Kind.VALIDATION


def test_a_path_that_would_add_an_option_to_a_mount_is_refused(bench, engine):
    folder = bench.folder / "a,target=,readonly=false"
    folder.mkdir()
    with pytest.raises(ToolError, match="use a path without commas"):
        bench.check(container(bench, folder=folder))


def test_a_file_of_code_is_named_where_it_lies_in_the_container(bench, engine):
    config = {"image": "python:3.11", "command": "python"}
    tool = bench.file("deploy.py", "print(1)", "docker", language="python", kind="docker", config=config, requires=())
    assert job_of(bench, tool, a="1")[0].argv[-4:] == ("python", "/tool/deploy.py", "--a", "1")
    (bench.folder / "deploy.py").write_text("print(2)")
    with pytest.raises(ToolError, match="changed while it was about to run"):
        bench.check(tool)


def test_an_entrypoint_is_one_word(bench, engine):
    with pytest.raises(ToolError, match=r"config\.entrypoint: write one word"):
        bench.check(container(bench, config={"entrypoint": ["a", "b"]}))


def test_podman_is_taken_where_there_is_no_docker_or_the_author_asks(bench, engine):
    shutil.copy(engine / "docker", engine / "podman")
    assert job_of(bench, container(bench))[0].argv[1].endswith("/docker")
    assert job_of(bench, container(bench, config={"engine": "podman"}))[0].argv[1].endswith("/podman")
    (engine / "docker").unlink()
    assert job_of(bench, container(bench))[0].argv[1].endswith("/podman")


@pytest.mark.spec("S3-11", "S3-31")
def test_without_an_engine_the_call_is_refused_with_what_to_install(bench):
    bench.search_path = "/nowhere"
    with pytest.raises(ToolError, match="the command 'docker' was not found; install Docker or Podman") as caught:
        bench.check(container(bench))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


@pytest.mark.parametrize("written", ["runc", 5, ["docker"]])
def test_another_engine_is_refused(bench, engine, written):
    with pytest.raises(ToolError, match=r"config\.engine: write one of docker, podman"):
        bench.check(container(bench, config={"engine": written}))


def test_a_runtime_of_the_project_may_bring_the_image(bench, engine):
    bench.tool("boxed", "docker", kind="runtime", config={"image": "alpine:3"}, requires=())
    tool = bench.tool(executor="boxed", config={"command": "ls"}, requires=())
    assert job_of(bench, tool)[0].argv[-2:] == ("alpine:3", "ls")


# With a stand-in that runs


@pytest.mark.spec("S3-11", "S3-31")
async def test_a_container_is_run_and_its_output_is_the_value(bench, engine):
    bench.variables["sample", "TOKEN"] = "abcd-1234"
    tool = container(bench, config={"command": "greet", "env": ["TOKEN"]}, output_schema={"type": "object"})
    told = await bench.value(tool, name="Ann")
    assert told["words"][-6:] == ["--env", "TOKEN", "python:3.11", "greet", "--name", "Ann"]
    assert told["variables"]["TOKEN"] == "abcd-1234"


@pytest.mark.spec("S3-31", "S3-35")
async def test_an_image_that_is_not_there_is_a_failure_that_is_not_repeated(bench, engine):
    limits = Limits(retry=RetryPolicy(max_attempts=3))
    outcome = await bench.call(container(bench, config={"image": "absent"}, limits=limits))
    assert outcome.error.message == "sample ended with exit code 125: Unable to find image 'absent' locally"
    assert not outcome.error.retryable


REMOVAL = re.compile(r"container (toolcrib-\w+) could not be removed: asked to rm --force (toolcrib-\w+)")


def removed(caplog):
    found = REMOVAL.search(caplog.text)
    return found is not None and found[1] == found[2]


async def test_a_container_that_ends_by_itself_is_left_to_the_engine(bench, engine, caplog):
    with caplog.at_level(logging.WARNING, "toolcrib.runners"):
        await bench.call(container(bench))
    assert not removed(caplog)


async def test_a_container_that_runs_too_long_is_removed(bench, engine, caplog):
    with caplog.at_level(logging.WARNING, "toolcrib.runners"):
        outcome = await bench.call(container(bench, config={"image": "slow"}), seconds=1.5)
    assert outcome.error.kind is Kind.TIMEOUT
    assert removed(caplog)


def is_running(word):
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in process.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


async def test_a_container_whose_call_is_cancelled_is_removed(bench, engine, context, caplog):
    image = f"slow-{os.urandom(6).hex()}"
    tool = container(bench, config={"image": image})
    task = asyncio.ensure_future(bench.runner.bind(tool).run({}, context(tool, 60)))
    until = time.monotonic() + 25
    while not is_running(image):
        assert time.monotonic() < until
        await asyncio.sleep(0.005)
    with caplog.at_level(logging.WARNING, "toolcrib.runners"):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert removed(caplog)
    assert not is_running(image)


def succeeds(*command):
    return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0


@pytest.fixture(scope="session")
def alpine():
    """The name of an image, where an engine answers that has it."""
    engines = [path for name in ("docker", "podman") if (path := shutil.which(name)) and succeeds(path, "info")]
    if not engines:
        pytest.skip("no container engine answers here")
    if not succeeds(engines[0], "image", "inspect", "alpine"):
        pytest.skip("the image alpine is not here; pull it")
    return "alpine"


@pytest.mark.spec("S3-31")
async def test_a_real_container_greets(bench, alpine):
    tool = container(bench, config={"image": alpine, "command": "echo", "args": ["hello"]})
    assert await bench.value(tool) == "hello"


def test_nothing_near_a_tool_passes_for_the_engine(bench, engine):
    planted = bench.folder / "node_modules" / ".bin"
    planted.mkdir(parents=True)
    shutil.copy(engine / "docker", planted / "docker")
    job, _ = job_of(bench, container(bench))
    assert job.argv[1] == str(engine / "docker")
    assert job.policy.unconfined
    (engine / "docker").unlink()
    with pytest.raises(ToolError, match="the command 'docker' was not found; install Docker or Podman"):
        job_of(bench, container(bench))


async def test_what_holds_for_a_container_is_told_and_not_more(bench, engine):
    outcome = await bench.call(container(bench))
    assert outcome.error is None
    assert outcome.meta["sandbox"]["guarantees"] == ["time", "reap", "env"]
