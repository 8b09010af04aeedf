"""Build, train, look inside and serve Transformers of your own."""

__version__ = "0.1.0"
