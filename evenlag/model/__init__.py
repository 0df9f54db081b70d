"""The problem and everything that defines it: balance, objective, bounds, the MIP and its backends."""
