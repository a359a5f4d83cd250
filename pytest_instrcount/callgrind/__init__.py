"""Counting under Callgrind: processes, requests, and the profiles that come out."""
