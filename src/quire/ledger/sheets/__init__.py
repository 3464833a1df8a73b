"""The ledger in a Google spreadsheet: a journal in a hidden tab, and a head that orders it."""
