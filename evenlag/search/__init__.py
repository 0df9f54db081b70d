"""Search of `evenlag.solve`: a portfolio of stages that find plans and prove bounds."""
