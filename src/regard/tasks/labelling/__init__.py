"""Labelling of sequences: classification, regression, similarity, tagging."""
