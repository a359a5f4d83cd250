"""Ranges that users name, and the session that records them."""
