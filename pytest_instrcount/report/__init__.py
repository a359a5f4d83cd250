"""What a run says: RunSummary -> lines of text, or a dict for JSON. Pure, but for writing files."""
