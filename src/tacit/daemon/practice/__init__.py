"""A whole federation on one machine, to learn on."""
