"""Tests, and what they share: groups (problems), an exact solver (exact), tables (fleet), a broker, the command.

Everything here is imported as `tests.x`, so that each module is loaded once.
"""
