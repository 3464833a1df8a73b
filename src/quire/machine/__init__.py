"""What may happen: workflows as declared, and every move of a record, as pure functions. No clock and no store."""
