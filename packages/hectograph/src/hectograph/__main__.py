"""``hectograph``: Google Workspace on this machine until interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable

from hectograph.emulator import Emulator
from hectograph.methods import listing
from hectograph.world import ACCOUNT, TIME_ZONE

_EPILOG = """\
Open the address in a browser: type in books and documents, answer mail as anybody, fill in forms. Point a client at it:

  gspread            replace https://sheets.googleapis.com and https://www.googleapis.com by the address
  official client    set rootUrl of the discovery document to the address, then build_from_document
  faults             curl -X POST ADDRESS/emulator/faults -d '{"fault": "lost_answer", "write": true}'
  a person           curl -X POST ADDRESS/emulator/person -d '{"do": "mail.reply", "as": "c@d.e", "text": "hi"}'
"""


def main(argv: list[str] | None = None, listening: Callable[[Emulator], object] | None = None) -> int:
    """Run an emulator until a signal ends it. ``listening`` is called with it once it listens."""
    parser = argparse.ArgumentParser(
        prog="hectograph",
        description="Emulates Google Workspace on loopback, with faults that can be switched on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8089, help="port, 0 for any free one (default: %(default)s)")
    parser.add_argument("--file", metavar="PATH", help="keep everything in this JSON file")
    parser.add_argument("--quotas", action="store_true", help="enforce 60 calls a minute per user, 300 per project")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="let every call take so long")
    parser.add_argument("--account", default=ACCOUNT, help="e-mail address of the caller (default: %(default)s)")
    parser.add_argument("--time-zone", default=TIME_ZONE, help="zone of the accounts' calendars (default: %(default)s)")
    parser.add_argument("--methods", action="store_true", help="print which methods are played, and end")
    given = parser.parse_args(argv)
    if given.methods:
        sys.stdout.write(listing(Emulator().app.services))
        return 0
    try:
        emulator = Emulator(given.host, given.port, given.file, account=given.account, time_zone=given.time_zone)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        parser.error(f"{given.file!r} is no file in which an emulator kept its books: {error}")
    emulator.world.quota.enabled = given.quotas
    emulator.world.latency_seconds = given.latency
    done = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: done.set())
    try:
        emulator.start()
    except (OSError, OverflowError) as error:
        parser.error(f"the emulator cannot listen there: {error}")
    try:
        sys.stdout.write(f"listening on {emulator.url}\n")
        if listening is not None:
            listening(emulator)
        sys.stdout.flush()
        done.wait()
    finally:
        emulator.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
