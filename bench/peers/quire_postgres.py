"""Quire on PostgreSQL."""

from _adapter import serve
from _quire import QuireAdapter

if __name__ == "__main__":
    serve(QuireAdapter())
