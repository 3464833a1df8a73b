"""Missions as agents that other agents call (Agent2Agent): a card for each mission, and a record for each task.

``tasks`` says what a record is as a task and knows no protocol; ``server`` owns the library. Needs the extra ``a2a``.
"""

from __future__ import annotations
