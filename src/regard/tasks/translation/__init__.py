"""Translation: one sequence from another."""
