"""The command `regard`: reads arguments, calls the library, shows what it returns. One file a command.

The files of commands import nothing heavy at their top, so that help and typos are answered at once; what needs torch is
imported inside the command. Results go to standard output, everything else that people read to standard error.
"""
