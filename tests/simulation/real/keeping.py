"""A history as a file: a run of real processes cannot be repeated, so the history of one that fails is kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from tests.simulation.history import Found, Happening, History, Order


def keep(history: History, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = asdict(history) | {"killers": sorted(history.killers), "cells": []}
    path.write_text(json.dumps(told), encoding="utf-8")


def kept(path: Path) -> History:
    told = json.loads(path.read_text(encoding="utf-8"))
    told["orders"] = [Order(**order) for order in told["orders"]]
    told["happenings"] = [Happening(*happening) for happening in told["happenings"]]
    told["found"] = {record: Found(*found) for record, found in told["found"].items()}
    told["faults"] = [(at, what) for at, what in told["faults"]]
    told["left_open"] = [(record, name) for record, name in told["left_open"]]
    told |= {"killers": frozenset(told["killers"]), "cells": set()}
    return History(**told)
