"""What runs at the coordinator's: the server of the federation, joining, and runs of studies."""
