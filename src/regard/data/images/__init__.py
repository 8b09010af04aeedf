"""Images with a class each."""
