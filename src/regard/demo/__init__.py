"""The built-in English-German corpus of `regard demo`: a grammar that writes both languages."""
