"""The few things that a local folder does to a disk, one method each: what a test may stop after any of them."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from typing import Any


def _found() -> Any:
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None


_syncfs = _found()
#: So much of a file is its head.
_HEAD_BYTES = 200


class Disk:
    """Files that are whole or not there: written under another name, made durable, then given their own."""

    def temporary(self, path: str, content: bytes, *, durable: bool = True) -> None:
        """A new file with this content. What is not durable yet becomes so by ``sync``."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync(self, directory: str) -> bool:
        """Make everything durable that is on the file system of this directory; False: it cannot be done so.

        One such call for hundreds of files takes a small part of the time of as many single ones.
        """
        if _syncfs is None:
            return False
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            return bool(_syncfs(descriptor) == 0)
        finally:
            os.close(descriptor)

    def sync_file(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, temporary: str, path: str) -> None:
        """Give the file its name, in place of another that may have it."""
        os.replace(temporary, path)

    def name_once(self, temporary: str, path: str) -> None:
        """Give the file its name unless another has it."""
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not os.path.exists(path):
                os.replace(temporary, path)
        with suppress(FileNotFoundError):
            os.unlink(temporary)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except (PermissionError, FileNotFoundError):  # a system that opens no directories, or it is gone
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def head(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read(_HEAD_BYTES)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return b""
