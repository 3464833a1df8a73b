"""``quire mission`` and ``quire model``: networks of agents, and models on this machine."""
