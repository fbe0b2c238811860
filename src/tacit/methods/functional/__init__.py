"""FunctionalMechanism: a perturbed quadratic objective (Du, Li and Li, OFAA)."""
