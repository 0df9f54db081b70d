"""What a driver calls."""
