"""Leaves: lines of the log that one statement writes of many records, as one row.

A line as a row of its own is two entries into indexes, a header, and a record in the server's own log: a good part of
what a move of a short record costs the server. A busy worker claims and settles hundreds of records at a time. Their
lines are a leaf: a row with an array for each column of the log.

No index says which leaves have lines of a record. Its row names the last one (``log_at``), and each leaf names for each
of its records the one before (``before``), so a record's log is found by going back. Who writes a leaf must know that:
the server does when it claims; a process does of records that it holds, by the hash at the end of their logs, which
moves with every line.

A leaf has at most one line of a record, and at least ``FEW`` lines: fewer are rows of ``events``, as are lines with
long texts and all that is decided under locks. The numbers of both come from one sequence, in steps of ``ROOM``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.model.event import Event
from quire.model.record import Record, Status
from quire.model.row import field_names

#: So many lines are a leaf.
FEW = 20
#: A leaf has at most so many lines: the step of the sequence (schema/postgres/003_leaves.sql).
ROOM = 1024
#: The leaves of records that run here: as many as there are images of them, and some that nobody asks for any more.
MOST_KNOWN = 50_000

#: The columns of the log that lines of a leaf have apart: all but ``seq``.
COLUMNS = field_names(Event)[1:]
_LISTED = ", ".join(COLUMNS)


def of_place(column: str) -> str:
    """SQL: the value of a line, by its ``place`` in a ``leaf``."""
    return f"leaf.{column}[CASE WHEN cardinality(leaf.{column}) = 1 THEN 1 ELSE place END]"


def _unfolded(leaf: str) -> str:
    """SQL: a table ``leaf``, given as a query, and with each leaf its lines as a table ``line``.

    What all lines have in common is looked up once for a leaf (OFFSET 0): a long array is read anew at each look.
    """
    common = ", ".join(f"cardinality(leaf.{name}) = 1 AS one_{name}, leaf.{name}[1] AS all_{name}" for name in COLUMNS)
    return f"""
        ({leaf} OFFSET 0) AS leaf
        CROSS JOIN LATERAL (SELECT {common} OFFSET 0) AS common
        CROSS JOIN LATERAL unnest({", ".join(f"leaf.{name}" for name in COLUMNS)}) WITH ORDINALITY
            AS line ({_LISTED}, place)
    """


_LINE = "leaf.seq + place - 1 AS seq, " + ", ".join(
    f"CASE WHEN one_{name} THEN all_{name} ELSE line.{name} END" for name in COLUMNS
)
#: The lines of all leaves after one number, up to another; at most so many. They come leaf by leaf, in order, because
#: the leaves do: to ask for an order would make the server take all of them apart, and then leave out most.
_WITHIN = f"SELECT * FROM leaves WHERE seq > $1::bigint - {ROOM} AND seq <= $2::bigint ORDER BY seq"
_IN_LEAVES = f"""
    SELECT {_LINE} FROM {_unfolded(_WITHIN)}
    WHERE line.hash IS NOT NULL AND leaf.seq + place - 1 > $1::bigint AND leaf.seq + place - 1 <= $2::bigint
    LIMIT $3::bigint
"""
#: The lines of the ledger after one number, up to another; at most so many, in order.
LINES = f"""
    SELECT * FROM (
        (
            SELECT seq, {_LISTED} FROM events WHERE seq > $1::bigint AND seq <= $2::bigint ORDER BY seq LIMIT $3::bigint
        )
        UNION ALL
        ({_IN_LEAVES})
    ) AS log ORDER BY seq LIMIT $3::bigint
"""
#: Is there anything after this one? In order: the planner, who takes a third of them for newer, would otherwise read
#: the table from its beginning.
NEWER = f"""
    (SELECT 1 FROM events WHERE seq > $1::bigint ORDER BY seq LIMIT 1)
    UNION ALL
    (
        SELECT 1 FROM leaves WHERE seq > $1::bigint - {ROOM} AND seq + cardinality(record_id) - 1 > $1::bigint
        ORDER BY seq LIMIT 1
    )
"""


def log_of(asked: str, *, many: bool = False, as_long_as: str = "true") -> str:
    """SQL: a table ``log`` of all lines of the records that ``asked`` names, a query for a column ``record_id``.

    ``many``: of many records, which share leaves: a leaf is then unfolded as a whole. Otherwise each line is looked up.
    ``as_long_as``: goes back from ``leaf`` to ``older`` as long as this holds; lines before that need not be there.
    """
    if many:
        wanted = "SELECT leaf AS seq, array_agg(place) AS places FROM chain WHERE place IS NOT NULL GROUP BY leaf"
        lines = f"""
            SELECT {_LINE} FROM {_unfolded(f"SELECT * FROM ({wanted}) AS wanted JOIN leaves USING (seq)")}
            WHERE line.hash IS NOT NULL AND line.place = ANY(places)
        """
    else:
        lines = f"""
            SELECT leaf.seq + place - 1, {", ".join(map(of_place, COLUMNS))}
            FROM chain JOIN leaves AS leaf ON leaf.seq = chain.leaf
            WHERE place IS NOT NULL AND leaf.hash[place] IS NOT NULL
        """
    return f"""
        WITH RECURSIVE asked AS MATERIALIZED ({asked}),
        chain (record_id, leaf, place) AS (
            SELECT asked.record_id, leaf.seq, array_position(leaf.record_id, asked.record_id)::bigint
            FROM asked JOIN records ON records.record_id = asked.record_id JOIN leaves AS leaf ON leaf.seq = log_at
            UNION ALL
            SELECT chain.record_id, older.seq, array_position(older.record_id, chain.record_id)::bigint
            FROM chain JOIN leaves AS leaf ON leaf.seq = chain.leaf
            JOIN leaves AS older ON older.seq = {of_place("before")}
            WHERE place IS NOT NULL AND {as_long_as}
        ),
        log AS (
            SELECT seq, {", ".join(f"events.{name}" for name in COLUMNS)} FROM asked JOIN events USING (record_id)
            UNION ALL
            {lines}
        )
    """


#: Lines of leaves, by number and hash, are marked as gone, without their texts; answers how many of each leaf. By their
#: versions, and the leaves before, lines that are still there are found.
FORGET = f"""
    WITH gone AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::text[]) AS gone (seq, hash)),
    found AS MATERIALIZED (
        SELECT leaf.seq, array_agg(gone.seq - leaf.seq + 1) AS places FROM gone
        JOIN leaves AS leaf ON leaf.seq > gone.seq - {ROOM} AND leaf.seq <= gone.seq
        WHERE leaf.hash[gone.seq - leaf.seq + 1] = gone.hash GROUP BY leaf.seq
    )
    UPDATE leaves SET hash = ARRAY(
        SELECT CASE WHEN place = ANY(found.places) THEN NULL ELSE line.hash END
        FROM unnest(leaves.hash) WITH ORDINALITY AS line (hash, place) ORDER BY place
    ), body = CASE WHEN cardinality(leaves.body) = 1 THEN leaves.body ELSE ARRAY(
        SELECT CASE WHEN place = ANY(found.places) THEN '' ELSE line.body END
        FROM unnest(leaves.body) WITH ORDINALITY AS line (body, place) ORDER BY place
    ) END
    FROM found WHERE leaves.seq = found.seq RETURNING cardinality(found.places)
"""
#: Leaves of which nothing is left go, but for those that lead to others: these may go when those are gone.
EMPTY = f"""
    DELETE FROM leaves AS leaf
    WHERE seq > $1::bigint - {ROOM} AND seq <= $2::bigint AND array_remove(hash, NULL) = '{{}}'
        AND NOT EXISTS (SELECT 1 FROM leaves AS older WHERE older.seq = ANY(leaf.before))
"""
#: What a claim writes of its lines, which it has in a table ``taken``.
CLAIMED = f"""
    told AS (
        INSERT INTO events ({_LISTED})
        SELECT record_id, n, v, now, 'claimed', body, run, $4, hash FROM taken
        WHERE (SELECT count(*) FROM taken) NOT BETWEEN $15::bigint AND {ROOM}
    ),
    leaf AS (
        INSERT INTO leaves ({_LISTED}, before)
        SELECT array_agg(record_id), array_agg(n), array_agg(v), ARRAY[min(now)], ARRAY['claimed'], array_agg(body),
            array_agg(run), ARRAY[$4], array_agg(hash), array_agg(log_at)
        FROM taken HAVING count(*) BETWEEN $15::bigint AND {ROOM}
        RETURNING seq
    )
"""


class Ends:
    """In which leaf the log of a record ends, of records that run here; by the hash of the log's last line."""

    def __init__(self) -> None:
        #: None: no line of it is in any.
        self._known: dict[str, int | None] = {}

    def before(self, rows: Iterable[Record]) -> list[int | None] | None:
        """The leaves in which the logs of these end; None if one of them is not known."""
        known = self._known
        try:
            return [known[row.log_hash] for row in rows]
        except KeyError:
            return None

    def put(self, rows: Iterable[Record], leaves: Iterable[int | None]) -> None:
        self._known.update(zip([row.log_hash for row in rows], leaves, strict=True))
        self._forget()

    def _forget(self) -> None:
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def moved(self, before: Mapping[str, Record | None], after: Mapping[str, Record], leaf: int | None) -> None:
        """These logs have gone on: in this leaf; None: in rows, so that the last leaf of each is the one it was."""
        known = self._known
        for record_id, row in after.items():
            old = before[record_id]
            if old is None:  # it is new
                end = None
            elif old.log_hash in known:
                end = known.pop(old.log_hash)
            else:
                continue
            if row.status is Status.RUNNING:
                known[row.log_hash] = end if leaf is None else leaf
        self._forget()
