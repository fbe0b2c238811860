"""What runs at a data owner's: consent, the checks of a question, and what the owner reads."""
