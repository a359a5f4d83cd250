"""`Timer`: statements counted without pytest."""
