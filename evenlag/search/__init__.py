"""Our own search: the portfolio of stages behind `evenlag.solve`."""
