"""Formulas of cells: their grammar, their evaluation, and results that spread over several cells."""
