"""The requests of ``documents.batchUpdate``, by what they change."""
