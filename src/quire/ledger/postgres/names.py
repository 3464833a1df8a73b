"""The ledger's tables by their full names.

A name without a schema is looked for along ``search_path``, which is state of a session. A pooler in transaction mode
gives each transaction another session, which may be one that another ledger of the same database used before.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NAMES = "records|events|leaves|receipts|signals|fanins|workers|controls|buckets|settings|blobs|ledger"
_SEQUENCES = "reached|events_seq_seq"
#: A name in the place of a table, or of a sequence in the text that names it.
_TABLE = re.compile(rf"(\b(?:FROM|JOIN|INTO|UPDATE)\s+|\b(?:set|next)val\(')({_NAMES}|{_SEQUENCES})\b(?!\.)")


@lru_cache(maxsize=4096)
def qualified(sql: str, schema: str) -> str:
    """Return the statement with the schema before the name of each table of the ledger."""
    if not schema:
        return sql
    return _TABLE.sub(lambda found: f'{found[1]}"{schema}".{found[2]}', sql)
