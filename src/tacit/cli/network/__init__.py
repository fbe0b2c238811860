"""Commands of a federation between organisations."""
