"""Functions of the host program that tools of bundles name by a key."""

import subprocess
import sys
import textwrap

import pytest

from toolcrib import Crib, Kind, SettingsError, ToolError, registered

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"

KEY = "github.com/acme/agent/tools.Weather"


def document(key=KEY, **more):
    return {
        "schemaVersion": "toolcrib-1",
        "displayName": "Weather",
        "description": "Tell the weather",
        "type": "go",
        "isEnabled": True,
        "argSchema": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"default": 1}}},
        "outputSchema": {},
        "impl": {"goFunc": key},
        **more,
    }


def stock(crib, **more):
    crib.bundles.put_bundle(BUNDLE, {"slug": "acme", "displayName": "Acme", "isEnabled": True})
    crib.bundles.put_tool(BUNDLE, "weather", "v1", document(**more))
    return BUNDLE


@pytest.mark.spec("S1-09", "S1-77", "S1-26", "S1-01")
async def test_the_function_under_the_key_gets_a_context_and_the_checked_arguments():
    seen = []

    def weather(context, arguments):
        seen.append((context.tool.name, context.caller, arguments))
        return {"sky": "blue"}

    async with Crib(functions={KEY: weather}, caller="ann") as crib:
        stock(crib)
        result = await crib.call("weather", city="Oslo")
    assert result.value == {"sky": "blue"}
    assert seen == [("weather", "ann", {"city": "Oslo", "days": 1})]


@pytest.mark.spec("S1-09")
async def test_an_async_function_is_awaited_and_one_that_raises_is_a_failed_call():
    async def weather(context, arguments):
        if arguments["city"] == "Atlantis":
            raise ToolError(Kind.NOT_FOUND, "there is no Atlantis")
        return arguments["city"].upper()

    async with Crib(functions={KEY: weather}) as crib:
        stock(crib)
        assert (await crib.call("weather", city="Oslo")).value == "OSLO"
        result = await crib.call("weather", city="Atlantis")
        assert (result.error.kind, result.error.message, result.refused) == (
            Kind.NOT_FOUND,
            "there is no Atlantis",
            False,
        )
        broken = await crib.call("weather", city=5)
        assert (broken.error.kind, broken.refused) == (Kind.VALIDATION, True)
        assert (await crib.call("weather", city="Oslo")).ok


@pytest.mark.spec("S1-14", "S1-26")
async def test_a_key_that_is_not_registered_switches_its_tool_off_until_it_is(project):
    async with Crib(project) as crib:
        bundle = stock(crib)
        [file] = (project / ".toolcrib" / "bundles" / bundle).glob("weather*")
        before = file.read_bytes()
        result = await crib.call("weather", city="Oslo")
        assert result.error.kind is Kind.DISABLED
        assert f"no function is registered under {KEY!r}" in result.error.message
        assert crib.bundles.tool(bundle, "weather", "v1").enabled
    async with Crib(project, functions={KEY: lambda context, arguments: "sun"}) as crib:
        assert (await crib.call("weather", city="Oslo")).value == "sun"
    assert file.read_bytes() == before


async def test_a_module_of_the_settings_registers_its_functions(project):
    (project / "meteo.py").write_text(
        textwrap.dedent(
            f"""
            from toolcrib import registered

            @registered({KEY!r})
            def weather(context, arguments):
                return "rain in " + arguments["city"]
            """
        )
    )
    async with Crib(project, modules={"tools": ["meteo"]}) as crib:
        stock(crib)
        assert (await crib.call("weather", city="Bergen")).value == "rain in Bergen"


def test_a_marked_function_stays_the_function_it_was():
    def weather(context, arguments):
        return 1

    assert registered(KEY)(weather) is weather
    for key in ("", "  ", None, 5):
        with pytest.raises(ToolError, match="the key of a function is a text"):
            registered(key)


@pytest.mark.spec("S1-10")
def test_a_function_is_called_without_a_process_and_without_a_connection():
    program = textwrap.dedent(
        f"""
        import asyncio, sys, threading
        sys.path.insert(0, {str(__import__("pathlib").Path(__file__).parent)!r})
        from test_registered import KEY, stock
        from toolcrib import Crib

        seen = []
        watching = False

        def watch(event, arguments):
            if watching and event.startswith(("socket.", "subprocess.", "os.fork", "os.posix_spawn", "os.exec")):
                seen.append(event)

        sys.addaudithook(watch)

        async def main():
            global watching
            async with Crib(functions={{KEY: lambda context, arguments: threading.get_ident()}}) as crib:
                stock(crib)
                watching = True
                for _ in range(3):
                    assert (await crib.call("weather", city="Oslo")).value == threading.get_ident()
                watching = False

        asyncio.run(main())
        print(seen)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.spec("S1-85")
async def test_a_kept_tool_does_not_answer_for_a_built_in_that_is_called_by_its_address(project):
    async with Crib(project, functions={KEY: lambda context, arguments: "mine"}) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "acme", "displayName": "Acme", "isEnabled": True})
        kept = crib.bundles.put_tool(BUNDLE, "read-file", "1.0.0", document())
        assert kept.warnings[-1] == "read-file alone means the built-in tool; call this one acme/read-file@1.0.0"
        other = crib.bundles.put_tool(BUNDLE, "read-files", "1.0.0", document())
        assert not [warning for warning in other.warnings if "built-in" in warning]
        assert crib.find("builtin/read-file@1.0.0").tool.bundle == "builtin"
        assert crib.find("builtin/read_file").tool.bundle == "builtin"
        assert crib.find("acme/read-file@1.0.0").tool.bundle == "acme"
        assert crib.find("read_file").tool.bundle == crib.find("read-file").tool.bundle == "builtin"
        assert (await crib.call("acme/read-file@1.0.0")).value == "mine"
        names = [(tool.name, tool.bundle) for tool in crib.offered()]
        assert ("read_file", "builtin") in names
        assert ("read-files", "acme") in names
        assert ("read-file", "acme") not in names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"http_tools": {"hosts": ["http://x.example/a"]}}, "http_tools.hosts"),
        ({"egress": {"private": ["localhost:1"]}}, "egress.private"),
    ],
)
def test_hosts_that_cannot_be_meant_are_found_before_anything_is_sent(given, name):
    with Crib(**given) as crib, pytest.raises(SettingsError, match=f"{name} in the host program: "):
        crib.check_settings()
