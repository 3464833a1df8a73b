"""The functions that formulas call, in groups; ``named`` finds one by its name."""
