"""``python -m pytest_instrcount doctor``: what is wrong with a machine, and what leaks into a count."""
