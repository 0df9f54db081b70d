"""What proves: all that better plans could use, listed and put together."""
