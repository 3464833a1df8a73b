"""Tools with which an agent acts at Google, each act an effect of its own, and people asked about what leaves."""
