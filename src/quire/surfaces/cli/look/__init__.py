"""Commands that show records and the ledger: list, show, why, logs, watch, report, graph."""
