"""What a step gets: one pass of a step's function, and everything that it asks for through its `Run`."""
