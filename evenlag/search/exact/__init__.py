"""Exact methods: lower bounds and optimality proofs."""
