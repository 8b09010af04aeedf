"""Baselines: what counting predicts, learned in seconds, for a score beside a model's; knows numpy, no model, no task."""
