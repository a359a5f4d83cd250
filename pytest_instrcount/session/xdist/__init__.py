"""``--instrcount`` under pytest-xdist: workers measure; the controller reads, compares and writes."""
