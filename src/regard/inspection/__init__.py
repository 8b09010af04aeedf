"""Looking inside: pictures of attention and of training."""
