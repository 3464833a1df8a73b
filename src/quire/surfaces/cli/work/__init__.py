"""Commands that start records and act on them: start, move, edit, answer, retry, cancel, halt."""
