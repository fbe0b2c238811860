"""The programs that run at the coordinator's, at each party's and at each center node's."""
