"""Noise for releases: exact samplers, and the grids on which noise is drawn in shares."""
