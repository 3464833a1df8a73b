"""The same plans, driven by real processes on a real store: what differs from the simulation on told time."""
