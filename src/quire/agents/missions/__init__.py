"""Missions: a blueprint as a workflow, its parts, its turns and its result."""
