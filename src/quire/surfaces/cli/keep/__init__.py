"""Commands that keep what was recorded: verify, export, mirror, rotate, promote."""
