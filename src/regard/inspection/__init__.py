"""Inspection: pictures of attention and of training, block ablation."""
