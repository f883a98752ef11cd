"""The files of deploy/: no engine runs here, so they are held against the product that they start."""

from __future__ import annotations

import json
import re
from configparser import RawConfigParser
from pathlib import Path

import click
import yaml

from toolcrib.core.plugins import Plugins
from toolcrib.infra.settings import ProjectSettings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
USER = 10001


def is_served_by(words: list[str]) -> bool:
    """Whether `crib` takes these words as those of a server."""
    assert words[0] == "serve"
    [part] = Plugins().parts("commands", "serve")
    command = part.load()
    command.make_parser(click.Context(command)).parse_args(words[1:])
    return True


def test_the_image_copies_what_is_there_and_starts_the_server_as_an_ordinary_user():
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert f"USER {USER}:{USER}" in text
    [command] = re.findall(r"^CMD (\[.+\])$", text, re.MULTILINE)
    assert is_served_by(json.loads(command))
    assert "TOOLCRIB_PROJECT_DATA_DIR=" in text
    assert ProjectSettings().data_dir


def test_a_container_has_no_capability_and_a_read_only_root():
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["crib"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert "no-new-privileges:true" in service["security_opt"]
    assert (DEPLOY / service["build"]["dockerfile"].removeprefix("deploy/")).is_file()
    named = [option.partition(":")[2] for option in service["security_opt"] if option.startswith("seccomp:")]
    assert named
    assert all((DEPLOY / name).is_file() for name in named)
    deployment, _ = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, USER)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_the_unit_starts_the_server_and_leaves_the_sandbox_what_it_needs():
    unit = RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((DEPLOY / "toolcrib.service").read_text())
    service = dict(unit["Service"])
    program, *words = service["ExecStart"].split()
    assert program.endswith("/crib")
    assert is_served_by(words)
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert "RestrictNamespaces" not in service
    assert "@mount" not in service["SystemCallFilter"]
    assert "@sandbox" not in service["SystemCallFilter"]


def test_the_profile_denies_nothing_that_the_sandbox_needs():
    [rule] = json.loads((DEPLOY / "seccomp.json").read_text())["syscalls"]
    assert rule["names"] == sorted(set(rule["names"]))
    needed = {"unshare", "mount", "open_tree", "move_mount", "mount_setattr", "seccomp", "prctl", "clone", "clone3"}
    assert needed.isdisjoint(rule["names"])
