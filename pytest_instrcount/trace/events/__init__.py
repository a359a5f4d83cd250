"""The events of a recording as users see them, and `profile`, which records them."""
