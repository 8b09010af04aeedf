"""The run folder: read, verified, written so that a kill at any instant leaves it whole. Knows no model; no pickle."""
