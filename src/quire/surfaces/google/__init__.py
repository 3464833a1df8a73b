"""Google on the command line: signing in, what is tried of a connection, and single acts."""
