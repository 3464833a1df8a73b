"""What may happen: every move of a record and every decision of a ledger, as pure functions. No clock and no store."""
