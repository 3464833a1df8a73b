"""Google Drive v3 and v2: one list of files, and what both versions of the API do with it."""
