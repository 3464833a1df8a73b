"""What is stored: frozen rows, no I/O. The fields of a row are the columns of its table, in order."""
