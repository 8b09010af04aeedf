"""Text: tokenizers and their training, vocabularies, sentence splitting, masking."""
