"""Pub/Sub v1: topics, and subscriptions that are pulled or pushed."""
