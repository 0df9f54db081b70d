"""Tests, in folders that mirror the rooms of evenlag; what they share is in support/.

Everything here is imported as `tests.x.y`, so that each module is loaded once.
"""
