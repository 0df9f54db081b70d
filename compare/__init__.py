"""Strategies beside each other: metrics, audit, frontier and how they are shown."""
