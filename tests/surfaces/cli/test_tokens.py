"""``quire token``, and addresses that are told only once they listen."""

from __future__ import annotations

import json
import re
import signal
import socket
import urllib.request

from tests.surfaces.cli.conftest import Project


def test_a_token_is_made_listed_and_revoked_and_its_text_is_kept_nowhere(project: Project) -> None:
    [made] = project.json("token", "create", "bob@x.eu", "--role", "operator", "--expires", "90d")
    text = made["token"]
    plain = project.quire("token", "create", "prom").stdout
    listed = project.json("token", "list")
    shown = project.quire("token", "list").stdout
    [gone] = project.json("token", "revoke", made["token_id"])
    after = {one["token_id"]: one for one in project.json("token", "list")}

    assert text.startswith("qt_") and made["role"] == "operator" and made["made_by"] == "ann@x.eu"
    assert re.search(r"^qt_\w+_[\w-]+$", plain, re.MULTILINE) and "prom is a viewer" in plain
    assert {one["name"] for one in listed} == {"bob@x.eu", "prom"} and text not in json.dumps(listed)
    assert "opens" in shown and "bob@x.eu" in shown
    assert gone["revoked_by"] == "ann@x.eu" and after[made["token_id"]]["revoked_at"]
    _, _, settings = project.contents()
    secret = text.split("_", 2)[2]  # it may hold the same mark
    assert len(secret) > 20 and secret not in str(settings)
    assert "there is no token" in project.error("token", "revoke", "nothing", code=4)
    assert "soon" in project.error("token", "create", "x", "--expires", "soon", code=2)


def test_a_token_that_could_never_open_anything_or_never_be_shown_is_not_made(project: Project) -> None:
    assert "opens nothing" in project.error("token", "create", "a", "--expires", "0s", code=2)
    assert "shorter than 300 years" in project.error("token", "create", "a", "--expires", "99999999999d", code=2)

    assert project.json("token", "list") == []


def test_the_address_is_told_when_it_listens_and_a_taken_one_is_not(project: Project) -> None:
    process = project.process("serve", "--port", "0")
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
    assert found is not None and int(found[1]) > 0, line
    with urllib.request.urlopen(f"{found[0]}/health") as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stdout.close()
    process.stderr.close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        text = project.error("serve", "--port", str(taken.getsockname()[1]), code=2)
    assert "cannot listen there" in text
    assert "nobody has a token" in project.error("serve", "--host", "0.0.0.0", "--port", "0", code=2)
    assert "runs no flow files" in project.error("serve", "flows.py", code=2)


def test_a_server_with_tick_works_while_it_is_called(project: Project) -> None:
    project.quire("start", "publish", "keyword=tea", "--id", "tea")
    process = project.process("serve", "--tick", "5s", "--port", "0")
    assert process.stdout is not None and process.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
    assert found is not None
    before = project.record("tea").step
    with urllib.request.urlopen(urllib.request.Request(f"{found[0]}/tick", method="POST")) as answer:
        told = json.loads(answer.read())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    lines = process.stderr.read()
    process.stdout.close()
    process.stderr.close()

    assert before == "draft" and project.record("tea").step == "review"
    assert told["ran"] and told["settled"] > 0 and not told["left"]
    assert "tick '0' by 'ann@x.eu' (local" in lines  # every act leaves its line, also here
