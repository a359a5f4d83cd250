"""The machine beneath: files, programs, git, text from outside, time; and objects of the user's."""
