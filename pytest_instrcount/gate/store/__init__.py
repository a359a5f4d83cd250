"""Baselines and tables of calls as files."""
