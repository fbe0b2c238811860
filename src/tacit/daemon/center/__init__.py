"""What runs at a center node's."""
