"""``python -m quire.surfaces.cli``: the same as ``quire``."""

from quire.surfaces.cli import main

main()
