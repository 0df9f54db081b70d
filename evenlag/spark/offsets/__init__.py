"""Offset ranges packed into even tasks for batch reads."""
