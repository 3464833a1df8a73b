"""Blueprints: read, checked, and said in the words that people wrote."""
