"""The embedded ledger: one SQLite file, one machine, nothing to set up."""
