"""Tasks v1: lists of tasks of each account."""
