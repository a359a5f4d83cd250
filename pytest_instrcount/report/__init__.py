"""Reports of a run: RunSummary -> lines of text, a dict for JSON, a page.

Pure, but for writing files and for reading git's log.
"""
