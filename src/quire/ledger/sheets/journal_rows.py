"""The journal of a Sheets ledger: what a row says, and which rows count.

A commit is one entry, in one row or several that follow each other: ``(generation, seq, token, prev_token, commit_id,
at, worker, format, body…)``. The body holds the after-image of everything that the commit touched, so replay needs no
clock and no code (protocol 3). The token is a hash over the entry and the token before it: a cell that somebody edited
breaks the chain. The body is JSON in ASCII, so there is nothing in it that a spreadsheet could read as something else.

Each generation begins with a snapshot. Of several entries that follow the same one (which Google should have refused),
the one that was accepted first counts. Beside each entry stands what the book itself had accepted just before it
(``accepted``, copied there by the commit), so that every reader finds the same order, wherever the rows stand (protocol
12).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from quire.errors import LedgerError
from quire.ledger.blobs import resolved
from quire.ledger.columns import TABLES, put_aside, row_of, with_blobs
from quire.model.event import Event
from quire.model.row import field_names, field_values

COLUMNS = ("generation", "seq", "token", "prev_token", "commit_id", "at", "worker", "format", "body")
BODY_AT = COLUMNS.index("body")
TOKEN_AT = COLUMNS.index("token")
#: Cells of a row that its entry's token covers; the body takes those that the other columns leave.
WIDTH = 12
#: The column beyond them: the token that the book had accepted before this entry. Its first cell holds the last one.
ACCEPTED_AT = WIDTH
#: What Google takes in one cell.
CELL_CHARACTERS = 50_000
FORMAT = "1"
#: Of a format that is none, so much is quoted.
FORMAT_CHARACTERS = 10
#: Values longer than this stand beside the rows, by their hash, and are written once.
INLINE_CHARACTERS = 4096

_TOKEN = re.compile(r"h(\d+)_[0-9a-f]{32}")
_FORM = re.compile(r"(\w+?)(s?):(\d+)/(\d+)")


class JournalDamaged(LedgerError):
    """Rows of the journal are missing or were changed: nothing is claimed or done until somebody has looked."""


class Entry(NamedTuple):
    """One commit, as it stands in the journal."""

    generation: int
    seq: int
    token: str
    prev_token: str
    commit_id: str
    #: Of the writer's clock; kept as text, so that it hashes the same everywhere.
    at: str
    worker: str
    snapshot: bool
    body: str
    #: The number of its last row, counted from 1 as people do; 0 before it is written.
    position: int = 0
    #: The token that the book had accepted just before; empty: it is not known.
    accepted: str = ""


def new_entry(
    previous: Entry | None, *, commit_id: str, at: float, worker: str, body: str, snapshot: bool = False
) -> Entry:
    """The entry that follows ``previous``; without one, the first of a book."""
    generation = 1 if previous is None else previous.generation + snapshot
    seq = 1 if previous is None else previous.seq + 1
    prev_token = "" if previous is None else previous.token
    entry = Entry(generation, seq, "", prev_token, commit_id, repr(at), worker, snapshot, body)
    return entry._replace(token=_token(entry))


def _token(entry: Entry) -> str:
    kind = FORMAT + "s" * entry.snapshot
    head = [str(entry.generation), str(entry.seq), entry.prev_token, entry.commit_id, entry.at, entry.worker, kind]
    hash_ = hashlib.sha256("\n".join([*head, entry.body]).encode()).hexdigest()
    return f"h{entry.seq}_{hash_[:32]}"


def cells(entry: Entry) -> list[list[str]]:
    """The rows that hold the entry."""
    each = CELL_CHARACTERS
    pieces = [entry.body[at : at + each] for at in range(0, len(entry.body), each)] or [""]
    wide = WIDTH - BODY_AT
    parts = [pieces[at : at + wide] for at in range(0, len(pieces), wide)]
    head = [str(entry.generation), str(entry.seq), entry.token, entry.prev_token]
    head += [entry.commit_id, entry.at, entry.worker]
    kind = FORMAT + "s" * entry.snapshot
    return [[*head, f"{kind}:{n}/{len(parts)}", *part] for n, part in enumerate(parts, 1)]


def entries(rows: Iterable[Sequence[Any]], first: int) -> list[Entry]:
    """The entries in these rows, the first of which has the number ``first``. Blank and foreign rows are passed over.

    Copies of a row are the same row; a row that says something else under a known token is damage.
    """
    found: dict[str, dict[int, tuple[int, Sequence[str]]]] = {}
    for position, row in enumerate(rows, first):
        if len(row) <= BODY_AT or not holds_entry(row):
            continue
        form = _FORM.fullmatch(str(row[BODY_AT - 1]))
        if form is None or form[1] != FORMAT:
            shown = str(row[BODY_AT - 1])[:FORMAT_CHARACTERS]  # a body may stand there, with what is secret in it
            raise JournalDamaged(
                f"row {position} of the journal has the format {shown!r}, which this version of Quire "
                "cannot read; a newer one may have written it (install a newer Quire), or somebody edited it"
            )
        texts = [*map(str, row), *[""] * (ACCEPTED_AT + 1 - len(row))]
        parts = found.setdefault(texts[TOKEN_AT], {})
        part = int(form[3])
        if part in parts and list(parts[part][1][:WIDTH]) != texts[:WIDTH]:
            raise JournalDamaged(_edited(position, texts[1]))
        parts.setdefault(part, (position, texts))
    return [_joined(parts) for parts in found.values()]


def holds_entry(row: Sequence[Any]) -> bool:
    """Return whether a row is one of an entry, or what people left of it."""
    return len(row) > TOKEN_AT and _TOKEN.fullmatch(str(row[TOKEN_AT])) is not None


def seq_of(token: str) -> int | None:
    """Return the number of the entry of this token; None: it is no token."""
    found = _TOKEN.fullmatch(token)
    return int(found[1]) if found is not None else None


def _joined(parts: Mapping[int, tuple[int, Sequence[str]]]) -> Entry:
    position, row = parts[min(parts)]
    form = _FORM.fullmatch(row[BODY_AT - 1])
    assert form is not None
    count = int(form[4])
    if sorted(parts) != list(range(1, count + 1)):
        raise JournalDamaged(
            f"entry {row[1]} of the journal has {len(parts)} of its {count} rows; {_REMEDY}",
        )
    body = "".join("".join(parts[n][1][BODY_AT:WIDTH]) for n in range(1, count + 1))
    accepted = parts[1][1][ACCEPTED_AT]
    try:
        generation, seq = int(row[0]), int(row[1])
    except ValueError:
        raise JournalDamaged(_edited(position, row[1])) from None
    last = max(place for place, _ in parts.values())
    texts = row[2], row[3], row[4], row[5], row[6]
    entry = Entry(generation, seq, *texts, bool(form[2]), body, last, accepted)
    if _token(entry) != entry.token:
        raise JournalDamaged(_edited(position, row[1]))
    return entry


_REMEDY = (
    "restore the book to a version before that (File > Version history), or run 'quire doctor --repair'; "
    "nothing is claimed until then"
)


def _edited(position: int, seq: str) -> str:
    return f"row {position} of the journal (entry {seq}) is not as it was written: somebody edited it; {_REMEDY}"


def following(last: Entry, found: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the entries after ``last`` in their order, and those that do not count since another came first.

    These are in the order in which they were accepted, as far as it is known. An entry whose place lies before ``last``
    does not count either, if the book accepted it later: its writer knew an older journal.
    """
    begins = last
    after: dict[str, list[Entry]] = {}
    known: dict[str, Entry] = {}
    for entry in found:
        known[entry.token] = entry
        if entry.seq > last.seq:
            after.setdefault(entry.prev_token, []).append(entry)
    counted: list[Entry] = []
    beside = [entry for entry in known.values() if entry.prev_token == last.prev_token and last.prev_token]
    void = [entry for entry in beside if entry.token != last.token]
    while children := after.pop(last.token, None):
        last, *others = accepted_in_order(children, known)
        counted.append(last)
        void += others
    for entry in void:  # grows: what follows a void entry is void, too
        void += accepted_in_order(after.pop(entry.token, ()), known)
    if after:
        lost = min((entry for rest in after.values() for entry in rest), key=lambda entry: entry.seq)
        raise JournalDamaged(
            f"the journal has entry {lost.seq} but not the one that it follows (after {last.seq} there is a gap); "
            f"{_REMEDY}"
        )
    ours = {entry.token for entry in (begins, *counted, *void)}
    return counted, void + _accepted_late(known.values(), begins.seq, ours)


def _accepted_late(entries: Iterable[Entry], begins: int, ours: set[str]) -> list[Entry]:
    """The entries whose places lie before ``begins``, but which the book accepted after one of ``ours``."""
    older = [entry for entry in entries if entry.seq <= begins and entry.token not in ours]
    found: list[Entry] = []
    while late := [entry for entry in older if entry.accepted in ours]:
        found += late
        ours |= {entry.token for entry in late}
        older = [entry for entry in older if entry not in late]
    return found


def accepted_in_order(rivals: Sequence[Entry], known: Mapping[str, Entry]) -> list[Entry]:
    """Entries that follow the same one, first accepted first.

    Each is identified by what the book had accepted before it. If that is not known, rows are taken to be inserted at
    the end that their writer knew, so that the first one stands further down.
    """
    if len(rivals) < 2:
        return list(rivals)
    tokens = {entry.token for entry in rivals}

    def before(entry: Entry) -> int:
        """Return how many of the others were accepted before this one."""
        seen, token = {entry.token}, entry.accepted
        while token in known and token not in seen:
            seen.add(token)
            token = known[token].accepted
        return len(seen & tokens)

    return sorted(rivals, key=lambda entry: (before(entry), -entry.position))


def beginning(found: Sequence[Entry]) -> Entry:
    """The snapshot with which the newest generation begins.

    One that came second, after a commit that it does not know, says what was before that commit: it is the beginning
    all the same, as an entry in the place of the one that both follow.
    """
    snapshots = [entry for entry in found if entry.snapshot]
    if not snapshots:
        raise JournalDamaged(f"the journal has no beginning: its first row is gone; {_REMEDY}")
    newest = max((entry.generation, entry.seq) for entry in snapshots)
    known = {entry.token: entry for entry in found}
    first = accepted_in_order([entry for entry in snapshots if (entry.generation, entry.seq) == newest], known)[0]
    rivals = [entry for entry in found if entry.prev_token == first.prev_token and first.prev_token]
    if len(rivals) > 1 and accepted_in_order(rivals, known)[0] is not first:
        return first._replace(seq=first.seq - 1, token=first.prev_token, prev_token="", commit_id="")
    return first


# -- bodies ----------------------------------------------------------------------------------------------------------


def rows_with_references(rows: Mapping[type[Any], Sequence[Any]]) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the rows by the names of their tables, and the long values that stand beside them.

    A row is stored as the list of its values, in the order of its fields. A line that has no ``seq`` yet is
    stored without it.
    """
    blobs: dict[str, str] = {}
    short: dict[str, list[Any]] = {}
    for type_, given in rows.items():
        if given:
            made = [field_values(put_aside(row, type_, INLINE_CHARACTERS, blobs)) for row in given]
            short[TABLES[type_][0]] = made if type_ is not Event else [row[1:] if not row[0] else row for row in made]
    return short, blobs


def body_of(
    short: Mapping[str, Sequence[Any]], blobs: Mapping[str, str], files: Mapping[str, str], others: Mapping[str, Any]
) -> str:
    """The text of a body. ``blobs`` stand in it; ``files`` are long values in Drive, by the ids of their files."""
    body: dict[str, Any] = dict(short)
    if blobs:
        body["blobs"] = dict(blobs)
    if files:
        body["files"] = dict(files)
    return _text(body | dict(others))


def in_file(reference: str, file_id: str) -> str:
    """The body of a snapshot whose text is a file in Drive."""
    return _text({"files": {reference: file_id}, "in_file": reference})


def _text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=True)


def files_of(entry: Entry) -> dict[str, str]:
    """Return the long values that this entry names first, by the ids of their files."""
    # Values are texts in texts, so this cannot stand in one of them as it is.
    return dict(json.loads(entry.body)["files"]) if '"files":{' in entry.body else {}


def opened(entry: Entry, texts: Mapping[str, str]) -> Entry:
    """Return the entry with its body, which may be a file."""
    if not (entry.snapshot and '"in_file":' in entry.body):
        return entry
    reference = str(json.loads(entry.body)["in_file"])
    text = texts.get(reference)
    if text is None:
        raise JournalDamaged(
            f"the journal goes on from a snapshot in Drive, and its file {files_of(entry)[reference]} is gone; take it "
            "out of Drive's bin, or restore the book to a version before it (File > Version history)"
        )
    return entry._replace(body=text)


def decoded(
    body: str, blobs: dict[str, str], files: dict[str, str], texts: Mapping[str, str]
) -> tuple[dict[type[Any], list[Any]], dict[str, Any]]:
    """The rows of a body with their long values put back, and what else it says.

    New long values go into ``blobs``, and those of them that are files into ``files``. A value whose file is gone stays
    the reference that stands for it: never something else.
    """
    found = json.loads(body)
    blobs |= found.get("blobs", {})
    files |= found.get("files", {})
    blobs |= {reference: texts[reference] for reference in found.get("files", {}) if reference in texts}

    def lookup(reference: str, where: str) -> str:
        return reference if reference in files and reference not in blobs else resolved(reference, blobs, where)

    rows: dict[type[Any], list[Any]] = {}
    for type_, (name, _) in TABLES.items():
        given = found.get(name)
        if given:
            if type_ is Event:
                given = [row if len(row) == len(field_names(Event)) else [0, *row] for row in given]
            rows[type_] = [with_blobs(row_of(type_, row), type_, lookup) for row in given]
    return rows, found
