"""What people read about a record or a ledger: why it waits, what is stuck, where its time went."""
