"""Whole systems on told time, in one process, held against a specification. See ``docs/simulation.md``."""
