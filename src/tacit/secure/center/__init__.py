"""The center: three nodes that add up, open sums, and compute on shares."""
