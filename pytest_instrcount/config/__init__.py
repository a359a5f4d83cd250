"""What a run is told: options, settings, and how a command line is written that repeats it."""
