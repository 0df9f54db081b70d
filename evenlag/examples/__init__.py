"""A snapshot recorded from a real cluster, for `evenlag demo`; see README.md beside it."""
