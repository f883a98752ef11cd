"""A tool on PostgreSQL reaches only servers that are allowed; nothing is sent to any other."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from sql_shop import Shop

from toolcrib import Crib, Kind

ME = "postgresql://me@{}/shop"


@pytest.mark.parametrize(
    ("place", "hosts", "problem"),
    [
        ("db.example.com", (), "db.example.com:5432 is not among the allowed hosts (none)"),
        ("db.example.com", ("other.example.com",), "db.example.com:5432 is not among the allowed hosts"),
        ("db.example.com:443", ("db.example.com",), "db.example.com:443 is not among the allowed hosts"),
        ("127.0.0.1", ("127.0.0.1",), "127.0.0.1 lies in 127.0.0.0/8 (loopback)"),
        ("10.0.0.1:6432", ("10.0.0.1:6432",), "10.0.0.1 lies in 10.0.0.0/8 (private)"),
        ("169.254.169.254", ("169.254.169.254",), "169.254.169.254 lies in 169.254.0.0/16"),
        ("[::1]", ("[::1]",), "::1 lies in ::1/128 (loopback)"),
    ],
)
async def test_a_stored_tool_reaches_the_hosts_of_the_operator_only(
    shop: Shop, place: str, hosts: tuple[str, ...], problem: str
) -> None:
    async with Crib(shop.root, sql_tools={"hosts": hosts}) as crib:
        result: Any = await crib.call(shop.store("SELECT 1", database=ME.format(place)))
    assert (result.refused, result.error.kind) == (True, Kind.HOST_NOT_ALLOWED)
    assert problem in result.error.message


async def test_the_hosts_of_a_tool_narrow_those_of_the_operator(shop: Shop) -> None:
    async with Crib(shop.root, sql_tools={"hosts": ["*.example.com"]}) as crib:
        name = shop.store("SELECT 1", database=ME.format("db.example.com"), hosts=["other.example.com"])
        result: Any = await crib.call(name)
    assert result.error.kind is Kind.HOST_NOT_ALLOWED


async def test_a_name_that_leads_to_a_private_address_is_refused(shop: Shop) -> None:
    async with Crib(shop.root, sql_tools={"hosts": ["localhost"]}) as crib:
        result: Any = await crib.call(shop.store("SELECT 1", database=ME.format("localhost")))
    assert (result.error.kind, "(loopback)" in result.error.message) == (Kind.HOST_NOT_ALLOWED, True)


async def test_a_server_that_does_not_answer_is_told(shop: Shop, unused_tcp_port: int) -> None:
    place = f"127.0.0.1:{unused_tcp_port}"
    async with Crib(shop.root, sql_tools={"hosts": [place]}, egress={"private": [place]}) as crib:
        result: Any = await crib.call(shop.store("SELECT 1", database=ME.format(place)))
    assert (result.error.kind, result.error.retryable) == (Kind.TRANSIENT, True)
    assert result.error.message == f"{place}: connection failed"


async def test_a_script_needs_the_capability_and_its_secret_granted(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.toml").write_text("")
    (tmp_path / "tools").mkdir()
    document = {
        "tool_id": "ask",
        "tool_type": "sql",
        "version": "1.0.0",
        "description": "Ask",
        "executor_id": "sql_client",
        "config": {"database": "${secret:SHOP}", "statement": "SELECT 1"},
    }
    (tmp_path / "tools" / "ask.json").write_text(json.dumps(document))
    access: Any
    for access, kind, problem in (
        ({}, Kind.CAPABILITY_MISSING, "ask requires net.postgresql, which is not granted"),
        ({"grants": {"ask": ["net.postgresql"]}}, Kind.CAPABILITY_MISSING, "SHOP, which is not granted to it"),
        (
            {"grants": {"ask": ["net.postgresql"]}, "access": {"variables": ["ask:SHOP"]}},
            Kind.HOST_NOT_ALLOWED,
            "127.0.0.1 lies in",
        ),
    ):
        async with Crib(tmp_path, **access) as crib:
            crib.secrets.set("SHOP", "postgresql://me:secret-word@127.0.0.1/shop")
            result: Any = await crib.call("ask")
        assert (result.refused, result.error.kind) == (True, kind), result.error
        assert problem in result.error.message
        assert "secret-word" not in json.dumps(result.to_json())


async def test_all_that_is_missing_for_a_statement_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "toolcrib.toml").write_text(
        '[sql_tools]\nhosts = ["db.example.com"]\n[grants]\nask = ["net.postgresql"]\n'
        '[access]\nvariables = ["ask:SHOP_USER", "ask:SHOP_PASSWORD"]\n'
    )
    document = {
        "tool_id": "ask",
        "tool_type": "sql",
        "version": "1.0.0",
        "description": "Ask",
        "executor_id": "sql_client",
        "config": {
            "database": "postgresql://${secret:SHOP_USER}:${secret:SHOP_PASSWORD}@10.0.0.1/shop",
            "statement": "SELECT 1",
        },
    }
    (tmp_path / "tools" / "ask.json").write_text(json.dumps(document))
    async with Crib(tmp_path) as crib:
        result: Any = await crib.call("ask")
        [ask] = [tool for tool in crib.tools if tool.name == "ask"]
        problems = await asyncio.to_thread(crib.problems_of, ask)
    lacks = [
        "database: ${secret:SHOP_USER} is not there",
        "database: ${secret:SHOP_PASSWORD} is not there",
        "10.0.0.1:5432 is not among the allowed hosts (db.example.com)",
        "10.0.0.1 lies in 10.0.0.0/8 (private)",
    ]
    assert (result.error.kind, result.error.details["problems"]) == (Kind.VALIDATION, lacks)
    assert [problem.partition(";")[0] for problem in problems] == lacks
