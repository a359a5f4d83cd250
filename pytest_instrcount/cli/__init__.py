"""``python -m pytest_instrcount``: merge, compare, show, history, trace, doctor."""
