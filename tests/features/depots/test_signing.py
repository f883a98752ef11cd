"""A signature says whose tool it is; where the operator asks for one, nothing else is installed."""

import base64
import json
import string

import pytest

from toolcrib import Kind, SettingsError, ToolError
from toolcrib.features.depots.package import decode_manifest, new_key, public_half

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    new_key(path)
    return path


async def refused_later(work) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    return caught.value


async def test_a_trusted_signature_is_named(author, project_of, depot, key):
    author.publish("hello", str(depot), key=key)
    settings = f'[depots]\nsigned = true\nkeys = ["{public_half(key)}"]\n'
    async with project_of("user", settings) as user:
        pulled = await user.pull("hello", str(depot), enable=True)
        assert pulled.signed.startswith(f"signed by the trusted key {public_half(key)} at 20")
        assert (await user.call("hello")).ok


async def test_an_unsigned_tool_is_refused_where_signatures_are_required(author, project_of, depot):
    author.publish("hello", str(depot))
    async with project_of("user", "[depots]\nsigned = true\n") as user:
        error = await refused_later(user.pull("hello", str(depot)))
        assert (error.kind, error.message) == (
            Kind.AUTH,
            "hello@1.0.0 is not signed, and depots.signed asks for a signature; nothing was installed",
        )
        assert user.find("hello") is None


async def test_a_key_that_is_not_trusted_is_refused_where_signatures_are_required(author, project_of, depot, key):
    author.publish("hello", str(depot), key=key)
    async with project_of("user", "[depots]\nsigned = true\n") as user:
        error = await refused_later(user.pull("hello", str(depot)))
        assert "which is not among depots.keys; add it if you trust it" in error.message


async def test_without_the_requirement_the_signer_is_told(author, user, depot, key):
    author.publish("hello", str(depot), key=key)
    pulled = await user.pull("hello", str(depot))
    assert pulled.signed == f"signed by {public_half(key)}, which is not among depots.keys"


@pytest.mark.parametrize("part", ["value", "time", "key", "hash"])
async def test_a_false_signature_is_refused_always(author, user, depot, key, tmp_path, part):
    author.publish("hello", str(depot), key=key)
    path = depot / "tools/hello/1.0.0/manifest.json"
    document = json.loads(path.read_text())
    if part == "hash":
        # A manifest of another content, consistent in itself, under the old signature.

        document["description"] = "another"
        document["hash"] = ""
        try:
            decode_manifest(json.dumps(document).encode(), "x")
        except ToolError:
            from dataclasses import replace

            original = decode_manifest(path.read_bytes(), "x")
            path.write_bytes(replace(original, description="another").encode())
    else:
        other = tmp_path / "other"
        changes = {
            "value": base64.b64encode(bytes(64)).decode(),
            "time": "2020-01-01T00:00:00+00:00",
            "key": new_key(other),
        }
        document["signature"][part] = changes[part]
        path.write_text(json.dumps(document))
    error = await refused_later(user.pull("hello", str(depot)))
    assert (error.kind, "its signature is false" in error.message) == (Kind.AUTH, True)


@pytest.mark.parametrize("part", ["key", "value"])
async def test_a_signature_has_one_spelling(author, user, depot, key, part):
    author.publish("hello", str(depot), key=key)
    path = depot / "tools/hello/1.0.0/manifest.json"
    document = json.loads(path.read_text())
    written = document["signature"][part]
    # The last letter has bits that mean nothing, so that the letter behind it in the alphabet stands for the same bytes.
    most, last = written.rstrip("=")[:-1], written.rstrip("=")[-1]
    spelled = most + ALPHABET[ALPHABET.index(last) + 1] + "=" * written.count("=")
    assert len({base64.b64decode(text.partition(":")[2] or text) for text in (written, spelled)}) == 1
    document["signature"][part] = spelled
    path.write_text(json.dumps(document))
    error = await refused_later(user.pull("hello", str(depot)))
    assert (error.kind, "its signature is false" in error.message) == (Kind.AUTH, True)


@pytest.mark.parametrize("key", ["rsa:AAAA", "ed25519:AAAA", "ed25519", "ed25519:!!!!", ""])
async def test_a_key_of_another_kind_signs_nothing(author, user, depot, key, tmp_path):
    path = tmp_path / "own"
    new_key(path)
    author.publish("hello", str(depot), key=path)
    manifest = depot / "tools/hello/1.0.0/manifest.json"
    document = json.loads(manifest.read_text())
    document["signature"]["key"] = key
    manifest.write_text(json.dumps(document))
    assert (await refused_later(user.pull("hello", str(depot)))).kind is Kind.AUTH


def test_a_key_is_for_its_owner_and_made_once(tmp_path):
    path = tmp_path / "key"
    public = new_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert public_half(path) == public
    assert public.startswith("ed25519:")
    with pytest.raises(ToolError) as caught:
        new_key(path)
    assert caught.value.kind is Kind.CONFLICT
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="others can read the key"):
        public_half(path)


@pytest.mark.parametrize("data", [b"", b"short"])
def test_what_is_no_key_is_refused(tmp_path, data):
    path = tmp_path / "key"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="is not a key of ours"):
        public_half(path)
    with pytest.raises(ToolError, match="make one with: crib depot key"):
        public_half(tmp_path / "none")
