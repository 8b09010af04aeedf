"""Labelled examples: texts or vectors with a class, a number or tags."""
