"""Trees of calls: what a test called, in which order, how often and for how long."""
