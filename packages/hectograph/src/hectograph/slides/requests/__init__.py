"""The requests of ``presentations.batchUpdate``, by what they change."""
