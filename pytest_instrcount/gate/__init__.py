"""Baselines on disk, comparing with them, and the verdict. Nothing here knows pytest."""
