"""Counts as values: names that do not depend on the build, noise that is priced, and their algebra."""
