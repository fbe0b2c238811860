"""PrivLogit and SecureNewton: the exact fit on secret shares (Wang, chapter 5)."""
