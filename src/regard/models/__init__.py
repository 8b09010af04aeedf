"""One architecture, one file. A model is only a network: no vocabulary, optimizer or download inside."""
