"""The trace_profile marker and fixture: what is traced, where pytest runs it, what becomes of the counts."""
