"""What every kind of data passes through: bad rows, validation split, stored corpus, cache."""
