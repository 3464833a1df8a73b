"""The ledger in PostgreSQL: many machines, one truth."""
