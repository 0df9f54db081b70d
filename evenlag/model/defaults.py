"""Default values of parameters, in a module that costs nothing to import, because the help shows them."""

DEFAULT_STICKINESS = "0.1%"
PAUSE = 3.0  # seconds; docs/pays.md explains the value
MOST_SEED = 2**31 - 1  # the solvers' own limit
FLEET_GAP = 1e-4  # share of the mean load: a smaller gap is not worth a fleet's time
REPLAY_GAP = 1e-4  # share of the mean load: a smaller gap is not worth the time of every rebalance
