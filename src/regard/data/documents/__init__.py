"""Running text: documents."""
