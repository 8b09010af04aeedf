"""How good is it: scores, significance, comparison. Knows no model."""
