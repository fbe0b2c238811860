"""ObjectivePerturbation: each party perturbs its own objective (Du, Li and Li, OFPA)."""
