"""Peers that benchmarks run beside ours, and the pages that come of it."""
