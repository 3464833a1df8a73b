"""Ways in: the Python client, the command line, and what others add beside them."""
