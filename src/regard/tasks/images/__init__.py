"""Image classification and captioning."""
