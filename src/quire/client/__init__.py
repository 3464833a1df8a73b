"""The Python API: everything that the command line does, from Python."""
