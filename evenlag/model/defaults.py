"""Defaults of parameters. The command shows them in its help, so that they must cost nothing to import."""

DEFAULT_STICKINESS = "0.1%"
PAUSE = 3.0  # seconds; docs/pays.md says where it comes from
MOST_SEED = 2**31 - 1  # the solvers' own limit
FLEET_GAP = 1e-4  # of the mean load: closer is not worth a fleet's time
REPLAY_GAP = 1e-4  # of the mean load: closer is not worth the time of every rebalance
