"""Requests to a cluster, and snapshots built from the answers."""
