"""Chat v1: spaces, messages that are made once, webhooks, and the events that a Chat app gets."""
