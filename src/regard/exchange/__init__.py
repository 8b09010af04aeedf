"""Exchange: networks and tokenizers of other programs read as ours, and ours written as theirs."""
