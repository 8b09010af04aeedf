"""Images for classification: each with a class."""
