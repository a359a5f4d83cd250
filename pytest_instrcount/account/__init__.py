"""The plugin's account of its own run: where the time went, what was counted, what failed."""
