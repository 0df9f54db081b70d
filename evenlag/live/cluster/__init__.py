"""What evenlag asks of a cluster, and the snapshot that it makes of the answers."""
