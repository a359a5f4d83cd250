"""The machine beneath: files, programs, git, text from outside, time."""
