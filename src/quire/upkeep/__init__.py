"""Keeping what was recorded: verify it, rotate it, export it, move it to another store."""
