"""PrivateNewton: the accuracy of a trusted curator, and nobody to trust."""
