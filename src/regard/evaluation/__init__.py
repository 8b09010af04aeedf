"""Evaluation: metrics, scores, significance tests, comparisons. Knows no model."""
