"""Documents: running text for language models."""
