"""Inspection: the trace of a model at work, what is computed from it, and pictures of attention and of training."""
