"""Starting plans."""
