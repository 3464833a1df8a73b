"""Facts of the machine that go with every figure."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path
from typing import Any


def facts(scratch: Path) -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _after_colon("/proc/cpuinfo", "model name"),
        "memory_gib": round(int(_after_colon("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1),
        "kernel": platform.release(),
        "system": _os_name(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "scratch_filesystem": _filesystem(scratch),
    }


def _after_colon(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return "0"


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _filesystem(path: Path) -> str:
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _device, mount, found, *_ = line.split()
        inside = str(path.resolve()).startswith(mount.rstrip("/") + "/") or mount == "/"
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind
