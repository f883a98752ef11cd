"""Folders below a folder of tools are bundles named after their path; what holds no tool is read or named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib import Crib

EXAMPLE = Path(__file__).parents[3] / "examples/folders/tools/order-status"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a tool file that returns its path, or a text."""

    def write(name: str, text: str | None = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        function = path.stem.replace("-", "_")
        path.write_text(
            f'def {function}() -> str:\n    """Return it."""\n    return "{name}"\n' if text is None else text
        )
        return path

    write("toolcrib.toml", "")
    return write


def addresses(crib: Crib) -> list[str]:
    return [tool.address for tool in crib.tools if tool.bundle != "builtin"]


def test_a_folder_is_a_bundle_named_after_its_path_for_calls_grants_and_switches(tmp_path, write):
    write("toolcrib.toml", '[grants]\n"billing-eu/*" = ["net.http"]\n[catalog]\ndisabled = ["billing/*"]\n')
    for name in ("tools/refund.py", "tools/a_b/refund.py", "tools/billing/eu/refund.py", "tools/billing/eu/only.py"):
        write(name)
    write("tools/billing/bill.py")
    for name in ("tools/a_b/refund.py", "tools/billing/eu/only.py"):
        path = tmp_path / name
        path.write_text(f'__requires__ = ["net.http"]\n{path.read_text()}')
    with Crib(tmp_path) as crib:
        assert not crib.problems
        assert addresses(crib) == [
            *("tools/refund@1.0.0", "a-b/refund@1.0.0", "billing/bill@1.0.0"),
            *("billing-eu/only@1.0.0", "billing-eu/refund@1.0.0"),
        ]
        # A bare name means the tool that lies further up, whatever the folders are called.
        assert crib.call_sync("refund").value == "tools/refund.py"
        assert crib.call_sync("billing-eu/refund").value == "tools/billing/eu/refund.py"
        assert crib.call_sync("only").value == "tools/billing/eu/only.py"
        assert not crib.missing(crib.find("billing-eu/only").tool)
        assert crib.missing(crib.find("a-b/refund").tool)
        assert crib.call_sync("billing/bill").error.kind == "DISABLED"


def test_an_address_finds_a_bundle_before_anything_was_listed_and_a_folder_that_comes_later(tmp_path, write):
    write("tools/billing/eu/refund.py")
    with Crib(tmp_path) as crib:
        assert crib.call_sync("billing-eu/refund").value == "tools/billing/eu/refund.py"
        write("tools/new/deep/refund.py")
        assert crib.call_sync("new-deep/refund").value == "tools/new/deep/refund.py"
        shutil.rmtree(tmp_path / "tools/new")
        assert crib.call_sync("new-deep/refund").error.kind == "NOT_FOUND"


def test_helpers_and_packages_hold_no_tools_and_can_be_imported(tmp_path, write, cli):
    write("tools/billing/_half.py", "def half(x): return x / 2\n")
    write("tools/billing/_lib/more.py")
    write("tools/billing/kit/__init__.py", "def third(x): return x / 3\n")
    write("tools/billing/kit/deep/more.py")
    write("tools/unused/__init__.py", "")
    code = "from _half import half\nfrom kit import third\n\ndef cut(x: float) -> float:\n    'Cut it.'\n"
    write("tools/billing/cut.py", f"{code}    return half(third(x))\n")
    with Crib(tmp_path) as crib:
        assert addresses(crib) == ["billing/cut@1.0.0"]
        assert crib.call_sync("cut", {"x": 12}).value == 2.0
    ignored = [line for line in cli("check", "-C", str(tmp_path)).out.splitlines() if line.startswith("ignored")]
    assert ignored == [
        "ignored: tools/unused: it is a package, so its files are helpers; without its __init__.py they are tools of a bundle"
    ]


def test_what_holds_no_tool_is_named_by_check_unless_a_tool_names_it(tmp_path, write, cli):
    for name in ("README.md", "LICENSE", "notes.ipynb", "more/test_it.py", "more/prices.csv", "more/rates.csv"):
        write(f"tools/{name}", "x")
    write("tools/more/price.py", "def price() -> str:\n    'Read it.'\n    return open('rates.csv').read()\n")
    said = json.loads(cli("check", "--json", "-C", str(tmp_path)).out)
    assert [line.partition(":")[0] for line in said["ignored"]] == [
        *("tools/LICENSE", "tools/README.md", "tools/more/prices.csv", "tools/more/test_it.py", "tools/notes.ipynb"),
    ]


def test_folders_of_one_name_and_those_that_can_be_no_bundle_are_problems(tmp_path, write):
    for name in (
        "billing/eu/a.py",
        "billing-eu/b.py",
        "My Data/c.py",
        "builtin/d.py",
        "system/e.py",
        "Empty Box/x.csv",
    ):
        write(f"tools/{name}")
    write("more/tools/f.py")
    with Crib(tmp_path, catalog={"folders": ["tools", "more/tools"]}) as crib:
        said = [
            problem.message.replace(f"{tmp_path}/", "").removesuffix("; rename the folder") for problem in crib.problems
        ]
        assert said == [
            "tools/My Data/c.py: its folder 'My Data' cannot be the bundle 'My Data': use 1 to 64 letters, digits or '-'",
            "tools/builtin/d.py: its folder 'builtin' cannot be the bundle 'builtin': this is a bundle of the platform",
            "tools/system/e.py: its folder 'system' cannot be the bundle 'system': this is a bundle of the platform",
            "tools/billing/eu: is the bundle billing-eu, as tools/billing-eu is; rename one of the two folders",
        ]
        assert addresses(crib) == ["billing-eu/b@1.0.0", "billing-eu/a@1.0.0", "tools/f@1.0.0"]


def test_a_stored_bundle_with_the_name_of_a_folder_keeps_its_id_as_address_and_is_a_problem(tmp_path, write):
    with Crib(tmp_path) as crib:
        bundle, _ = crib.bundles.put_bundle(
            "018faf50-b7b6-7a01-9a05-a22a6e0af101", {"slug": "billing", "displayName": "Billing", "isEnabled": True}
        )
    write("tools/billing/a.py")
    with Crib(tmp_path) as crib:
        (problem,) = crib.problems
        assert problem.message == (
            f"bundles/{bundle.id}: the bundle billing has the name of tools that are not stored, so its address is its id; "
            "give it another slug, or rename their folder"
        )


def test_a_tool_folder_below_belongs_to_the_bundle_of_its_folder_and_is_built_there(tmp_path, write, cli):
    shutil.copytree(EXAMPLE, tmp_path / "tools/shop/eu/order-status")
    write("tools/order_status.py")
    assert "tools/shop/eu/order-status is not built" in cli("check", "-C", str(tmp_path)).out
    assert cli("build", "-C", str(tmp_path)).code == 0
    with Crib(tmp_path) as crib:
        assert addresses(crib) == ["tools/order-status@1.0.0", "shop-eu/order-status@1.0.0"]
        assert crib.call_sync("order_status").value == "tools/order_status.py"
        assert not crib.problems
