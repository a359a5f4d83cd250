"""Fuzzing of all that is read: ``targets`` says of what, ``run`` does it, guided by coverage."""
