"""Benchmarks that were written for pytest-benchmark or pytest-codspeed, measured as they are."""
