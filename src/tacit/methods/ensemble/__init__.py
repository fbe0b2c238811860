"""Ensemble: local classifiers label public data (Hamm, Cao and Belkin)."""
