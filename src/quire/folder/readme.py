"""The README of a workflow's folder: what stands where, and by which schema."""

from __future__ import annotations

from quire.folder.layout import SCHEMA


def readme(workflow: str) -> str:
    """Return the text; its last line names the schema."""
    title = " ".join(workflow.split())
    return f"""# {title}

Quire writes this folder behind the commits of its ledger. The ledger decides; these files show. Deleting or editing one
changes no decision: `quire verify` names the difference.

| where | what |
|---|---|
| `state/state_<record>.json` | one record as it is now, with its version |
| `state/state_table.csv` | all records, one a line |
| `artifacts/receipt_<record>_<step>.json` | proof of one irreversible act: signed, written once |
| `artifacts/drafts/`, `artifacts/files/` | what steps made for people |
| `logs/<UTC date>/<run>.json` | one run: one worker's hold on a record, from claim to release |
| `locks/lock_<dedupe key>.lock` | one act that is under way, or in doubt; empty after a clean run |
| `config/` | yours: constants, flags, pointers to credentials. Never a secret itself |

Ids are spelt as they are, where the file system allows; any other character is `%` and its UTF-8 bytes in hex. Every
file holds the whole id. Times are UTC.

Schema {SCHEMA} of the folder.
"""
