"""DBOS Transact on SQLite."""

from _adapter import serve
from _dbos import DbosAdapter

if __name__ == "__main__":
    serve(DbosAdapter())
