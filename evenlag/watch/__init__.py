"""Watching groups: read them every so often, plan each within its share of the interval, serve metrics, publish."""
