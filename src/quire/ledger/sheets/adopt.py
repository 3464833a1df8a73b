"""``quire adopt``: a copy, or a book that was restored to an older version, becomes a ledger of its own (protocol 11).

What was done in the other book, or in the part that is gone, is not known here. So in one fenced commit a new epoch
begins, every worker is closed, and each open record asks a person whether it goes on; of effects that were under way it
asks whether they happened. What has ended stays. Killed before that commit, nothing has changed; after it, all has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quire.clock import new_id
from quire.errors import LedgerError
from quire.ledger.engine import LEDGER_ID, new_ledger_id
from quire.ledger.memory.tables import Tables
from quire.ledger.sheets.commits import snapshot_body
from quire.ledger.sheets.journal_rows import new_entry
from quire.ledger.sheets.mark import read_marks
from quire.ledger.sheets.plan import Plan
from quire.ledger.sheets.repair import begin, journal, new_head, send
from quire.ledger.sheets.replica import Replica
from quire.model.row import replace
from quire.rules import adoption, sweeps

if TYPE_CHECKING:
    from quire.ledger.sheets.ledger import SheetsLedger

_CLOSED = "its book was adopted"


class Adopted(NamedTuple):
    """What an adopted book asks."""

    #: Open records that ask whether they go on, and those of them with effects in doubt.
    asks: int
    in_doubt: int


async def adopt(ledger: SheetsLedger, by: str) -> Adopted:
    """On a ledger that is connected, not open. A book that was adopted before answers the same again."""
    await ledger.book.look()
    found = await journal(ledger)
    if found.damage:
        raise LedgerError(found.damage)
    await ledger.long_values.fetch(found.chain, {})
    replica = Replica()
    for each in found.chain:
        replica.apply(each, ledger.long_values.texts)
    marks = await read_marks(ledger.drive, ledger.spreadsheet_id)
    last, tables = found.chain[-1], replica.tables
    rewound = marks.lost(replica) is not None
    if replica.book == ledger.spreadsheet_id and not rewound:
        adopted = _asked(tables)
        if not adopted.asks:
            raise LedgerError(
                f"the book {ledger.spreadsheet_id} is not a copy and was not restored: there is nothing to adopt"
            )
        return adopted
    if tables.sealed:
        raise LedgerError(f"this book is sealed, its records are at {tables.sealed}; there is nothing to adopt")
    draft = Plan(tables, ledger.clock.now()).draft
    draft.epoch += 1
    why = "this book was restored to an older version" if rewound else f"this book is a copy of {replica.book}"
    for worker in list(tables.all_workers.values()):
        if worker.closed is None:
            draft.workers[worker.worker_id] = replace(worker, closed=_CLOSED)
    for record in list(tables.all_records.values()):
        sweeps.adopted(draft, record, by, why)
    tables.apply(draft)
    # Numbers that the other book has used are not used again.
    seq = max(last.seq, marks.seq)
    if replica.book != ledger.spreadsheet_id:
        # Two ledgers go on from here: what they begin from now on is not the same act for the world outside.
        setting = new_ledger_id(tables.all_settings.get(LEDGER_ID))
        tables.all_settings[LEDGER_ID] = replace(setting, version=setting.version + 1)
        # The files in Drive are the other book's, which may delete them
        replica.home = ""
        replica.files = {name: file for name, file in replica.files.items() if name not in replica.blobs}
    body = await snapshot_body(replica, ledger.long_values)
    entry = new_entry(
        last._replace(seq=seq), commit_id=new_id("c_"), at=ledger.clock.now(), worker="", body=body, snapshot=True
    )
    heads = await ledger.book.heads()
    fence = next((token for token, _ in heads if token == last.token), "")
    if not fence:
        await send(
            ledger, [*({"deleteNamedRange": {"namedRangeId": token}} for token, _ in heads), new_head(last.token)]
        )
        fence = last.token
    await begin(ledger, entry, fence, found.height)
    return _asked(tables)


def _asked(tables: Tables) -> Adopted:
    asking = [record for record in tables.all_records.values() if adoption.asked(record) is not None]
    return Adopted(len(asking), sum(record.open_intents > 0 for record in asking))
