"""The object, the command, the file it keeps, the page, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from emulator_api import Api, Book, Refused, named, upload
from hectograph import Emulator
from hectograph.__main__ import main


def threads() -> set[threading.Thread]:
    """Those of emulators; one that other tests share may run in this process too."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("emulator")}


def test_it_starts_and_stops_and_starts_again() -> None:
    before = threads()
    emulator = Emulator()
    with pytest.raises(OSError):
        Api(emulator)("GET", "/")
    for _ in range(2):
        with emulator:
            assert Api(emulator).raw("GET", "/")[0] == 200
        assert threads() == before
    emulator.stop()


def test_it_stops_while_a_connection_is_open() -> None:
    import http.client

    before = threads()
    with Emulator() as emulator:
        connection = http.client.HTTPConnection(emulator.host, emulator.port, timeout=10)
        connection.request("GET", "/emulator/clock")
        connection.getresponse().read()
    connection.close()

    assert threads() == before


def test_everything_is_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "books.json"
    with Emulator(path=path) as emulator:
        book = Api(emulator).book("Kept")
        book.put("A1", [["text", 1.5, True]])
        book.type("A2", [["=A1&B1", "2020-01-01"]])
        book.batch(named("h0"), {"mergeCells": {"range": {"sheetId": 0, "startRowIndex": 5, "endRowIndex": 7}}})
        file = upload(Api(emulator), "f.bin", bytes(range(256)))
        before = book.meta(includeGridData="true")
    with Emulator(path=path) as emulator:
        again = Book(Api(emulator), book.book_id)
        assert again.meta(includeGridData="true") == before
        assert again.values("A2:B2", valueRenderOption="FORMULA") == [["=A1&B1", 43831]]
        assert again.api.raw("GET", f"/drive/v3/files/{file}?alt=media")[1] == bytes(range(256))
        again.put("A1", [["new"]])
    with Emulator(path=path) as emulator:
        assert Book(Api(emulator), book.book_id).values("A1") == [["new"]]
    assert [item.name for item in tmp_path.iterdir()] == ["books.json"]


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "books.json"
    path.write_text('{"format": 99}')

    with pytest.raises(ValueError, match="format 99 found, 1 expected"):
        Emulator(path=path)


def test_its_clock_can_be_told_from_outside() -> None:
    with Emulator(clock=lambda: datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)) as emulator:
        book = Api(emulator).book()
        book.type("A1", [["=TODAY()", "=NOW()"]])

        assert book.values("A1:B1") == [["2/3/2020", "2/3/2020 4:05:06"]]
        made = book.api("GET", f"/drive/v3/files/{book.book_id}", fields="createdTime")
        assert made == {"createdTime": "2020-02-03T04:05:06.000Z"}


def test_two_slashes_mean_one(book: Book) -> None:
    assert book.api("GET", "/" + book.path)["spreadsheetId"] == book.book_id
    assert book.api("GET", book.path + "/")["spreadsheetId"] == book.book_id


def test_the_date_of_an_answer_is_the_emulators(book: Book) -> None:
    book.api("POST", "/emulator/clock", {"now": "2020-01-02T03:04:05+00:00"})

    assert book.api.raw("GET", book.path)[2]["date"] == "Thu, 02 Jan 2020 03:04:05 GMT"


def test_a_token_is_given_to_whoever_asks_without_a_grant_and_refused_for_a_grant_that_is_none(api: Api) -> None:
    status, raw, _ = api.raw("POST", "/token")
    other = api.raw("POST", "/token", b"grant_type=x&assertion=y")

    assert (status, other[0]) == (200, 400)
    assert json.loads(raw)["token_type"] == "Bearer"
    assert json.loads(other[1])["error"] == "unsupported_grant_type"


def test_a_service_account_of_google_auth_gets_its_token(emulator: Emulator) -> None:
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    requests = pytest.importorskip("requests", reason="requests is not installed")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from google.auth.transport.requests import Request
    from google.oauth2 import service_account

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    info = {"client_email": "robot@example.com", "private_key": key.decode(), "token_uri": emulator.url + "token"}
    credentials = service_account.Credentials.from_service_account_info(info, scopes=["any"])  # type: ignore[no-untyped-call]  # untyped
    with requests.Session() as session:
        credentials.refresh(Request(session))

    assert credentials.valid


def test_the_pages_show_books_and_cells_and_take_edits(api: Api, book: Book) -> None:
    book.put("A1", [["<b>", 2]])
    status, page, headers = api.raw("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f'href="/book/{book.book_id}"'.encode() in page

    _, page, _ = api.raw("GET", f"/book/{book.book_id}")
    for outside in (b"http://", b"https://", b"src=", b"@import"):
        assert outside not in page

    data = api("GET", f"/book/{book.book_id}/data")
    assert data["cells"] == [[0, 0, "<b>", {}], [0, 1, "2", {"r": "2", "a": "right"}]]
    assert api("GET", f"/book/{book.book_id}/data", after=data["key"], top=0) == {"same": True}
    api("POST", f"/book/{book.book_id}/edit", {"do": "edit", "cell": "A2", "text": "=B1*3", "sheet": 0})
    assert book.values("A2") == [["6"]]
    new = api("GET", f"/book/{book.book_id}/data", after=data["key"], top=0)
    assert new["cells"][2] == [1, 0, "6", {"f": "=B1*3", "a": "right"}]
    with pytest.raises(Refused):
        api("POST", f"/book/{book.book_id}/edit", {"do": "delete_rows", "at": 99999})
    assert api.raw("GET", "/book/nope")[0] == 404


def test_one_window_of_a_long_sheet_is_sent(api: Api, book: Book) -> None:
    book.put("A1", [[n] for n in range(1000)])

    data = api("GET", f"/book/{book.book_id}/data", top=600)

    assert (data["top"], data["cells"][0][:3], len(data["cells"])) == (600, [600, 0, "600"], 400)


def test_help_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])

    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "--port" in text
    assert "Google Workspace" in text


@pytest.mark.parametrize("port", ["taken", "70000"])
def test_a_port_that_cannot_be_is_told_in_one_sentence(capsys: pytest.CaptureFixture[str], port: str) -> None:
    with Emulator() as other, pytest.raises(SystemExit) as left:
        main(["--port", str(other.port) if port == "taken" else port])

    assert left.value.code == 2
    assert "the emulator cannot listen there: " in capsys.readouterr().err


def test_a_file_that_holds_no_books_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "quire.toml"
    for content in (b"flows = []", b"\xff\x00", b"[1]", b"{}"):
        file.write_bytes(content)
        with pytest.raises(SystemExit) as left:
            main(["--port", "0", "--file", str(file)])

        assert left.value.code == 2
        assert "is no file in which an emulator kept its books" in capsys.readouterr().err
        assert file.read_bytes() == content


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hectograph", "--port", "0", "--file", str(tmp_path / "b.json")]
    source = str(Path(__file__).resolve().parents[1] / "src")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")])),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.rsplit(":", 1)[1].strip().rstrip("/"))
        emulator = Emulator(port=port)
        Api(emulator).book("Kept")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    assert "Kept" in (tmp_path / "b.json").read_text()
