"""Paillier's encryption: keys and packed vectors."""
