"""Configuration in the folder: constants and pointers are read, secrets are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.errors import InputError
from quire.folder.config import SecretFound
from quire.folder.local import LocalFolder
from quire.folder.secret import redacted, secrets_of

#: Put together here so that no scanner takes this file for a leak.
OPENAI = "sk-" + "Ab3dEf6hIj9kLm2nOp5q"
AWS = "AKIA" + "ABCDEFGHIJKLMNOP"


def put(tmp_path: Path, name: str, text: str) -> LocalFolder:
    config = tmp_path / "folder" / "Workflows" / "w" / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / name).write_text(text)
    return LocalFolder(tmp_path / "folder")


async def test_constants_flags_and_pointers_are_read_and_a_change_is_a_new_version(tmp_path: Path) -> None:
    folder = put(tmp_path, "constants.json", '{"max_words": 900, "credentials": "env:CMS_TOKEN", "key": "campaign_id"}')
    put(tmp_path, "flags.toml", 'publish = true\n[limits]\ntoken_limit = 4000\nkey_name = "CMS_API_KEY"\n')
    await folder.open()

    config = await folder.config("w")
    put(tmp_path, "flags.toml", "publish = false\n")
    later = await folder.config("w")

    assert config["constants"]["max_words"] == 900
    assert config["flags"]["limits"]["token_limit"] == 4000
    assert later["flags"] == {"publish": False}
    assert config.version != later.version
    assert await folder.config("none") == {}
    await folder.close()


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("a.json", json.dumps({"openai": OPENAI}), "openai"),
        ("a.json", json.dumps({"cms": {"password": "hunter2"}}), "cms.password"),
        ("a.json", json.dumps({"cms": {"apiKey": "Zk3v9Qw7Lp2Xr8Tb5Nm1"}}), "cms.apiKey"),
        ("a.toml", f'note = "{AWS}"\n', "note"),
        ("a.toml", 'access_token = "q8W3e7R2t6Y1u5I9"\n', "access_token"),
        ("a.env", "DB_PASSWORD=correct-horse\n", "line 1"),
        ("a.yaml", f"x: 1\nsecret_key: {OPENAI}\n", "line 2"),
        ("service.json", json.dumps({"private_key": "-----BEGIN PRIVATE KEY-----\nMII"}), "private_key"),
        ("a.txt", "postgresql://ann:geheim99@db/x", "line 1"),
        ("a.json", '{"password": "hunter2"', "line"),
    ],
)
async def test_a_secret_is_refused_by_its_place_and_not_shown(tmp_path: Path, name: str, text: str, where: str) -> None:
    if where == "line":
        text = '{"openai": "' + OPENAI + '"'  # not even JSON
    folder = put(tmp_path, name, text)
    await folder.open()

    with pytest.raises(SecretFound) as refused:
        await folder.config("w")

    assert where in str(refused.value)
    assert "hunter2" not in str(refused.value) and OPENAI not in str(refused.value)
    assert "env:NAME" in str(refused.value)
    await folder.close()


@pytest.mark.parametrize(
    "value",
    ["env:CMS_TOKEN", "${CMS_TOKEN}", "projects/p/secrets/cms/versions/1", "op://vault/cms/token", "", "<your key>"],
)
async def test_a_pointer_is_no_secret(tmp_path: Path, value: str) -> None:
    folder = put(tmp_path, "pointers.json", json.dumps({"cms": {"password": value, "token": value}}))
    await folder.open()

    assert (await folder.config("w"))["pointers"]["cms"]["token"] == value
    await folder.close()


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = put(tmp_path, "constants.json", "{oops")
    await folder.open()

    with pytest.raises(InputError, match=r"constants\.json' cannot be read"):
        await folder.config("w")
    await folder.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connect(password='hunter2')", "connect(password='[redacted]')"),
        ('{"api_key": "Zb81hTqP0xLw93Kd"}', '{"api_key": "[redacted]"}'),
        ("GET /x?token=Zb81hTqP0xLw93Kd&n=2", "GET /x?token=[redacted]&n=2"),
        ("password=hunter2 user=ann", "password=[redacted] user=ann"),
        ("password: must be long", "password: must be long"),
        ("KeyError: 'key'; primary_key=17, key: 'name'", "KeyError: 'key'; primary_key=17, key: 'name'"),
        ("the secret_name='db' is env:DB_PASSWORD", "the secret_name='db' is env:DB_PASSWORD"),
    ],
)
def test_what_stands_behind_the_name_of_a_secret_is_struck_out(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_secrets_of_the_environment_are_struck_out_wherever_they_stand() -> None:
    environ = {"CMS_TOKEN": "tea and cake", "PWD": "/home/ann/flows", "HOME": "/home/ann", "KEY_FILE": "keys.json"}

    assert secrets_of(environ) == ["tea and cake"]
    assert redacted("no tea and cake in /home/ann/flows", secrets_of(environ)) == "no [redacted] in /home/ann/flows"


def test_a_long_text_is_read_once() -> None:
    text = "x" * 1_000_000 + "=" * 1000

    assert redacted(text) == text


def test_keys_are_struck_out_of_error_texts() -> None:
    text = redacted(f"401 for Bearer abcdefghijklmnop and {OPENAI} at https://ann:geheim99@db/x")

    assert text == "401 for Bearer [redacted] and [redacted] at https://[redacted]@db/x"
