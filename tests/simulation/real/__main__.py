"""``python -m tests.simulation.real run|keep|tell STORE FIRST END FOLDER``: what ``real/seeds.py`` starts."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.simulation.real import runs

if __name__ == "__main__":
    do, store, first, end, folder = sys.argv[1:]
    seeds = range(int(first), int(end))
    if do == "tell":
        sys.stdout.write(runs.told(seeds.start, store, Path(folder)))
    else:
        runs.main(store, seeds, Path(folder), keeps_all=do == "keep")
