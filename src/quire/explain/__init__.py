"""What people are told about a record or a ledger: why it waits, what is stuck, where its time went."""
