"""Jobs that a driver calls."""
