"""NoisyDescent: noisy gradients, from a public start (Hoseinpour et al.)."""
