"""A snapshot recorded from a real cluster, for `evenlag demo`; see its README.md."""
