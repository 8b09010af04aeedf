"""The run folder and its checkpoints: read, verified, written so that a kill at any instant leaves them intact."""
