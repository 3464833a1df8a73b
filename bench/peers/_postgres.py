"""Looks into PostgreSQL from the peers that bring psycopg."""

from __future__ import annotations

from typing import Any

import psycopg


def scalar(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()  # type: ignore[call-overload]
        return row[0] if row else None


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


def columns(url: str, table: str) -> list[str]:
    schema, _, name = table.rpartition(".")
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = %s"
            " AND is_generated = 'NEVER' ORDER BY ordinal_position",
            (name, schema or "public"),
        ).fetchall()
    return [row[0] for row in rows]


class Eye:
    """One open connection that counts, for loops that look often."""

    def __init__(self, url: str, **settings: str) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._connection = psycopg.connect(url, autocommit=True, options=options)

    def count(self, statement: str) -> int:
        row = self._connection.execute(statement).fetchone()  # type: ignore[call-overload]
        assert row is not None
        return int(row[0])


def size(url: str) -> int:
    return int(scalar(url, "SELECT pg_database_size(current_database())"))
