"""HypothesisTransfer: source hypotheses and importance weights (Wang, chapter 4)."""
