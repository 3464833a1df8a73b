"""Commands that run until they are stopped, and what they need: up, worker, serve, panel, table, mcp, tick, token."""
