"""The page in a browser: a server on this machine, and the same page as one file."""
