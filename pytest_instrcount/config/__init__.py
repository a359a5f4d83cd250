"""The configuration of a run: options, settings, and the command line that repeats it."""
