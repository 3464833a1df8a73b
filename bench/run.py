"""The command: ``python bench/run.py --help``."""

import sys
from pathlib import Path

# As a script it has its own folder on the path, not the one above.
sys.path[0] = str(Path(__file__).resolve().parents[1])

if __name__ == "__main__":
    from bench.harness import main

    main()
