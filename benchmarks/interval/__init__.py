"""What `benchmarks/intervals.py` draws, how it counts, and the page that comes of it."""
