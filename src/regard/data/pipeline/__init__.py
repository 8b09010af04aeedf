"""The pipeline that every kind of data passes through: source, survey, validation split, encoding, stored corpus, cache."""
