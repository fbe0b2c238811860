"""Baselines that promise nothing: all records pooled, and each party alone."""
