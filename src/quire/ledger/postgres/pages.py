"""Pages of lines: lines of the log of many records, written by one statement as one row of the table ``leaves``.

A line as a row of its own costs two entries in indexes, a header, and a record in the server's own log: a good part of
what a move of a short record costs the server. A busy worker claims and settles hundreds of records at a time. Their
lines are a page: a row with an array for each column of the log.

No index says which pages have lines of a record. The record's row names its last page (``log_at``), and each page names
for each of its records the page before (``before``), so a record's log is found by going back. The writer of a page
must know the page before: the server knows it when it claims; a process knows it of records that it holds, by the hash
at the end of their logs, which changes with every line.

A page has at most one line of a record, and at least ``FEW`` lines: fewer lines are rows of ``events``, as are lines
with long texts and all lines that are decided under locks. The numbers of both come from one sequence, in steps of
``ROOM``.
"""

from __future__ import annotations

from quire.ledger.columns import LINE_COLUMNS

#: From this many lines on, lines are a page.
FEW = 20
#: A page has at most this many lines: the step of the sequence (schema/postgres/003_leaves.sql).
ROOM = 1024

#: The columns of a page, each an array: all columns of the log but ``seq``.
COLUMNS = LINE_COLUMNS
_LISTED = ", ".join(COLUMNS)


def of_place(column: str) -> str:
    """SQL: the value of a line, by its ``place`` in a ``page``."""
    return f"page.{column}[CASE WHEN cardinality(page.{column}) = 1 THEN 1 ELSE place END]"


def _unfolded(page: str) -> str:
    """SQL: a table ``page``, given as a query, and the lines of each page as a table ``line``.

    A value that all lines have in common is read once for the page (OFFSET 0), because each access reads a whole array.
    """
    common = ", ".join(f"cardinality(page.{name}) = 1 AS one_{name}, page.{name}[1] AS all_{name}" for name in COLUMNS)
    return f"""
        ({page} OFFSET 0) AS page
        CROSS JOIN LATERAL (SELECT {common} OFFSET 0) AS common
        CROSS JOIN LATERAL unnest({", ".join(f"page.{name}" for name in COLUMNS)}) WITH ORDINALITY
            AS line ({_LISTED}, place)
    """


_LINE = "page.seq + place - 1 AS seq, " + ", ".join(
    f"CASE WHEN one_{name} THEN all_{name} ELSE line.{name} END" for name in COLUMNS
)
#: The lines of all pages after one number, up to another; at most so many. They come in order because
#: the pages do. An ORDER BY would make the server take all pages apart, and then leave out most of the lines.
_WITHIN = f"SELECT * FROM leaves WHERE seq > $1::bigint - {ROOM} AND seq <= $2::bigint ORDER BY seq"
_IN_PAGES = f"""
    SELECT {_LINE} FROM {_unfolded(_WITHIN)}
    WHERE line.hash IS NOT NULL AND page.seq + place - 1 > $1::bigint AND page.seq + place - 1 <= $2::bigint
    LIMIT $3::bigint
"""
#: The lines of the ledger after one number, up to another; at most so many, in order.
LINES = f"""
    SELECT * FROM (
        (
            SELECT seq, {_LISTED} FROM events WHERE seq > $1::bigint AND seq <= $2::bigint ORDER BY seq LIMIT $3::bigint
        )
        UNION ALL
        ({_IN_PAGES})
    ) AS log ORDER BY seq LIMIT $3::bigint
"""
#: Is there any line after this one? The ORDER BY is needed: the planner takes a third of all lines for newer, and would
#: otherwise read the table from its beginning.
NEWER = f"""
    (SELECT 1 FROM events WHERE seq > $1::bigint ORDER BY seq LIMIT 1)
    UNION ALL
    (
        SELECT 1 FROM leaves WHERE seq > $1::bigint - {ROOM} AND seq + cardinality(record_id) - 1 > $1::bigint
        ORDER BY seq LIMIT 1
    )
"""


def log_of(asked: str, *, many: bool = False, as_long_as: str = "true") -> str:
    """SQL: a table ``log`` of all lines of the records that ``asked`` names, which is a query for ``record_id``.

    ``many``: many records share pages, so each page is unfolded as a whole. Otherwise each line is looked up.
    ``as_long_as``: the condition for going back from ``page`` to ``older``; lines before that may be left out.
    """
    if many:
        wanted = "SELECT page AS seq, array_agg(place) AS places FROM chain WHERE place IS NOT NULL GROUP BY page"
        lines = f"""
            SELECT {_LINE} FROM {_unfolded(f"SELECT * FROM ({wanted}) AS wanted JOIN leaves USING (seq)")}
            WHERE line.hash IS NOT NULL AND line.place = ANY(places)
        """
    else:
        lines = f"""
            SELECT page.seq + place - 1, {", ".join(map(of_place, COLUMNS))}
            FROM chain JOIN leaves AS page ON page.seq = chain.page
            WHERE place IS NOT NULL AND page.hash[place] IS NOT NULL
        """
    return f"""
        WITH RECURSIVE asked AS MATERIALIZED ({asked}),
        chain (record_id, page, place) AS (
            SELECT asked.record_id, page.seq, array_position(page.record_id, asked.record_id)::bigint
            FROM asked JOIN records ON records.record_id = asked.record_id JOIN leaves AS page ON page.seq = log_at
            UNION ALL
            SELECT chain.record_id, older.seq, array_position(older.record_id, chain.record_id)::bigint
            FROM chain JOIN leaves AS page ON page.seq = chain.page
            JOIN leaves AS older ON older.seq = {of_place("before")}
            WHERE place IS NOT NULL AND {as_long_as}
        ),
        log AS (
            SELECT seq, {", ".join(f"events.{name}" for name in COLUMNS)} FROM asked JOIN events USING (record_id)
            UNION ALL
            {lines}
        )
    """


#: Marks lines of pages as gone, by number and hash, and deletes their texts; answers how many of each page. Their
#: versions and the numbers of earlier pages stay, because lines that are still there are found by them.
FORGET = f"""
    WITH gone AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::text[]) AS gone (seq, hash)),
    found AS MATERIALIZED (
        SELECT page.seq, array_agg(gone.seq - page.seq + 1) AS places FROM gone
        JOIN leaves AS page ON page.seq > gone.seq - {ROOM} AND page.seq <= gone.seq
        WHERE page.hash[gone.seq - page.seq + 1] = gone.hash GROUP BY page.seq
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
#: Deletes pages without lines. Exception: a page that leads to other pages stays until those are gone.
EMPTY = f"""
    DELETE FROM leaves AS page
    WHERE seq > $1::bigint - {ROOM} AND seq <= $2::bigint AND array_remove(hash, NULL) = '{{}}'
        AND NOT EXISTS (SELECT 1 FROM leaves AS older WHERE older.seq = ANY(page.before))
"""
