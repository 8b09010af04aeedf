"""Parallel text: sentence pairs."""
