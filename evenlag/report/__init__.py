"""Reports: tables and text for terminals, pictures, progress."""
