"""What every model is made of: one idea, one file."""
