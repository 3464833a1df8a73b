"""The requests of ``spreadsheets.batchUpdate``, one module for each kind of thing that they change."""
