"""Averaging: the average of locally trained classifiers (Pathak, Rane and Raj)."""
