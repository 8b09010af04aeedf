"""Training: one loop for every model, with its optimizer, schedules, checkpoints and early stopping; fine-tuning; plans."""
