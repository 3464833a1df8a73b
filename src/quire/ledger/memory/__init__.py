"""The ledger in memory: for tests, and the reference."""
