"""The programs that run at the coordinator's, at each party's and at each center node's."""

DEFAULT_RUNS = 2  # that a consent allows: a run that loses a party starts again with the rest, and costs again
