"""Images with captions, for captioning."""
