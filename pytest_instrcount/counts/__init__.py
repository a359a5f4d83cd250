"""Counts as values: names that do not depend on the build, kinds of noise, and their algebra."""
