"""TernaryDescent: a network trained with noisy ternary gradients (Wang, chapter 3)."""
