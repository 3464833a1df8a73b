"""The short ways on PostgreSQL: commits and claims that are faster than lock, read, decide, write. Each may decline."""
