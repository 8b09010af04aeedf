"""Images with captions."""
