"""Events as files that other tools open: one module per format, one runner."""
