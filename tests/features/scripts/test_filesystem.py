"""One operation per call, in the workspace only, with the capability that the called tool itself lists."""

import time
from pathlib import Path, PurePosixPath

import pytest

from toolcrib import Call, Context, Kind, Tool, ToolError
from toolcrib.features.scripts.chain import Order, resolve
from toolcrib.features.scripts.host_drivers import MAX_FILE_BYTES, FilesystemDriver
from toolcrib.infra.files.jail import Jail
from toolcrib.lib.system_tools import OPERATIONS, system_tools
from toolcrib.model.tool import Chained, Entry

PRIMITIVES = {tool.name: tool for tool in system_tools()}

BOTH = ("fs.read", "fs.write")


def not_granted(name):
    raise ToolError(Kind.CAPABILITY_MISSING, f"{name} is not granted")


def order_for(config=None, arguments=None, *, declared=None, requires=BOTH, variable=not_granted):
    """An order for a tool with this config, or for the primitive itself if there is none."""
    tool = PRIMITIVES["filesystem"]
    if config is not None:
        run = Chained(kind="filesystem", tool_type="tool", executor="filesystem", folder=Path(), config=config)
        names = declared or arguments or {}
        tool = Tool(
            name="sample",
            description="A sample.",
            parameters={"type": "object", "properties": {name: {} for name in names}},
            run=run,
            bundle="project",
            requires=frozenset(requires),
        )
    chain = resolve(tool, lambda name, _: Entry(tool=PRIMITIVES[name]))
    values = {"tool_id": tool.name}
    return Order(tool=tool, run=tool.run, chain=chain, arguments=arguments or {}, values=values, variable=variable)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "a.txt").write_text("alpha")
    (folder / "tools").mkdir()
    (folder / "tools" / "mine.py").write_text("mine")
    (tmp_path / "outside.txt").write_text("outside")
    return folder


@pytest.fixture
def driver(root):
    with Jail(root, is_sensitive=lambda path: ".env" in PurePosixPath(path).parts, protected=[root / "tools"]) as jail:
        yield FilesystemDriver(jail)


@pytest.fixture
def call(driver):
    """Check and run, as the pipeline does."""

    async def call_once(order):
        driver.check(order, Call(name=order.tool.name))
        context = Context(
            tool=order.tool,
            call_id="call-7",
            caller="local",
            mode="text",
            deadline=time.monotonic() + 60,
            seconds=10,
            session=None,
            call=None,
            audit=None,
        )
        return (await driver.run(order, context)).value

    return call_once


@pytest.fixture
def refuse(call):
    async def refuse_once(order):
        with pytest.raises(ToolError) as caught:
            await call(order)
        return caught.value

    return refuse_once


def refuse_check(driver, order):
    with pytest.raises(ToolError) as caught:
        driver.check(order, Call(name=order.tool.name))
    return caught.value


class TestPrimitive:
    @pytest.mark.spec("S3-57", "S3-65")
    async def test_every_operation_does_what_it_says(self, call, root):
        async def do(operation, path, **more):
            return await call(order_for(None, {"operation": operation, "path": path, **more}))

        assert await do("write", "new/b.txt", content="Köln") == {"path": "new/b.txt", "bytes": 5}
        assert await do("append", "new/b.txt", content="!") == {"path": "new/b.txt", "bytes": 1}
        assert await do("read", "new/b.txt") == "Köln!"
        assert await do("list", "new") == [{"name": "b.txt", "type": "file", "size": 6}]
        assert await do("exists", "new/b.txt") is True
        assert await do("delete", "new/b.txt") == {"path": "new/b.txt", "deleted": True}
        assert await do("exists", "new/b.txt") is False
        assert await do("make_folder", "new/deep/er") == {"path": "new/deep/er", "made": True}
        assert await do("make_folder", "new/deep/er") == {"path": "new/deep/er", "made": False}
        assert (root / "new/deep/er").is_dir()

    @pytest.mark.spec("S3-65")
    @pytest.mark.parametrize("operation", ["chmod", "READ", "", None, 5, ["read"]])
    def test_an_unknown_operation_is_refused_before_anything_runs(self, driver, operation):
        error = refuse_check(driver, order_for(None, {"operation": operation, "path": "a"}))
        assert error.kind is Kind.VALIDATION
        assert error.message == f"filesystem: operation is missing or unknown; write one of {', '.join(OPERATIONS)}"

    @pytest.mark.parametrize("path", [None, 5, ["a"]])
    def test_a_path_that_is_no_text_is_refused(self, driver, path):
        assert "path is missing" in refuse_check(driver, order_for(None, {"operation": "read", "path": path})).message

    @pytest.mark.parametrize("operation", ["write", "append"])
    @pytest.mark.parametrize("content", [None, 5, {"a": 1}])
    def test_content_that_is_no_text_is_refused_before_anything_is_written(self, driver, root, operation, content):
        order = order_for(None, {"operation": operation, "path": "c.txt", "content": content})
        assert refuse_check(driver, order).message == (
            f"filesystem: content is missing or unknown; write the text to {operation}"
        )

    def test_content_beyond_the_limit_is_refused_before_anything_is_written(self, driver):
        order = order_for(None, {"operation": "append", "path": "c.txt", "content": "a" * (MAX_FILE_BYTES + 1)})
        assert refuse_check(driver, order).kind is Kind.LIMIT_EXCEEDED

    async def test_arguments_are_taken_as_they_are(self, call, root):
        await call(order_for(None, {"operation": "write", "path": "{x}.txt", "content": "${HOME} {{y}}"}))
        assert (root / "{x}.txt").read_text() == "${HOME} {{y}}"

    @pytest.mark.parametrize("operation", OPERATIONS)
    @pytest.mark.parametrize("path", ["../outside.txt", "/etc/hostname", "notes/../../outside.txt", ".env"])
    async def test_no_operation_leaves_the_workspace_or_touches_a_sensitive_file(self, refuse, root, operation, path):
        (root / ".env").write_text("secret")
        error = await refuse(order_for(None, {"operation": operation, "path": path, "content": "x"}))
        assert error.kind in {Kind.BLOCKED, Kind.VALIDATION}
        assert (root / ".env").read_text() == "secret"
        assert root.with_name("outside.txt").read_text() == "outside"

    @pytest.mark.parametrize("operation", ["write", "append", "delete", "make_folder"])
    @pytest.mark.parametrize("path", ["tools/mine.py", "tools/new", "tools/new/er"])
    async def test_what_is_protected_is_not_changed(self, refuse, root, operation, path):
        error = await refuse(order_for(None, {"operation": operation, "path": path, "content": "x"}))
        assert error.kind in {Kind.BLOCKED, Kind.NOT_FOUND, Kind.VALIDATION}
        assert [entry.name for entry in (root / "tools").iterdir()] == ["mine.py"]
        assert (root / "tools/mine.py").read_text() == "mine"

    async def test_a_file_that_is_no_text_is_refused(self, refuse, root):
        (root / "b.bin").write_bytes(b"\xff")
        error = await refuse(order_for(None, {"operation": "read", "path": "b.bin"}))
        assert error.message == "'b.bin' is not UTF-8 text (byte 0); read a text file, or convert it to UTF-8"


class TestCapabilities:
    @pytest.mark.spec("S3-64", "S3-65")
    @pytest.mark.parametrize(
        ("operation", "capability"),
        [
            ("read", "fs.read"),
            ("list", "fs.read"),
            ("exists", "fs.read"),
            ("write", "fs.write"),
            ("append", "fs.write"),
            ("delete", "fs.write"),
            ("make_folder", "fs.write"),
        ],
    )
    def test_an_operation_needs_its_capability_among_what_the_tool_lists(self, driver, root, operation, capability):
        arguments = {"path": "notes", "content": "x"}
        driver.check(order_for({"operation": operation}, arguments, requires=[capability]), Call(name="sample"))
        (other,) = set(BOTH) - {capability}
        error = refuse_check(driver, order_for({"operation": operation}, arguments, requires=[other]))
        assert error.kind is Kind.CAPABILITY_MISSING
        assert error.message == f"sample: {operation} needs {capability}; list it in the tool's requires"


class TestConfig:
    async def test_what_the_author_left_open_comes_from_the_arguments(self, call):
        assert await call(order_for({"operation": "read"}, {"path": "notes/a.txt"})) == "alpha"

    async def test_the_author_is_never_overridden(self, call, root):
        config = {"operation": "append", "path": "notes/log.txt", "content": "{line}\n"}
        arguments = {"line": "one", "operation": "delete", "path": "notes/a.txt", "content": "no"}
        await call(order_for(config, arguments))
        assert (root / "notes/log.txt").read_text() == "one\n"
        assert (root / "notes/a.txt").read_text() == "alpha"

    async def test_slots_are_filled_with_arguments_platform_names_and_variables(self, call, root):
        config = {"operation": "write", "path": "notes/{name}.txt", "content": "{tool_id} {n} ${WHO:-nobody}"}
        await call(order_for(config, {"name": "b", "n": 5}, variable=lambda _: None))
        assert (root / "notes/b.txt").read_text() == "sample 5 nobody"

    @pytest.mark.parametrize("name", ["../tools/x", "..", "a/../../x", "..\\x", "."])
    def test_a_value_does_not_climb_out_of_the_folder_that_its_author_named(self, driver, name):
        config = {"operation": "read", "path": "notes/.{name}" if name == "." else "notes/{name}"}
        error = refuse_check(driver, order_for(config, {"name": name}))
        assert error.kind is Kind.VALIDATION
        assert error.message.startswith('config.path: a value leads up with ".."')

    def test_a_path_that_is_all_the_callers_is_left_to_the_jail(self, driver):
        driver.check(
            order_for({"operation": "read", "path": "{p}"}, {"p": "notes/../notes/a.txt"}), Call(name="sample")
        )

    @pytest.mark.parametrize(
        ("config", "kind"),
        [
            ({"operation": "read", "path": "{nobody}"}, Kind.VALIDATION),
            ({"operation": "read", "path": "${HOME}"}, Kind.CAPABILITY_MISSING),
            ({"operation": "read", "path": "a", "encoding": "latin-1"}, Kind.VALIDATION),
            ({"path": "a"}, Kind.VALIDATION),
        ],
    )
    def test_a_config_that_cannot_work_is_refused_before_anything_runs(self, driver, config, kind):
        error = refuse_check(driver, order_for(config))
        assert error.kind is kind
        assert error.message.startswith(("config", "filesystem: operation"))

    async def test_no_error_repeats_a_variable(self, refuse):
        config = {"operation": "read", "path": "notes/${SECRET}"}
        error = await refuse(order_for(config, variable=lambda _: "s3cret-name"))
        assert error.kind is Kind.NOT_FOUND
        assert "s3cret" not in str(error.to_json())
