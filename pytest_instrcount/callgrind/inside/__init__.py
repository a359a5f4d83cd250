"""All that runs under Valgrind and needs pytest: the processes of a run, its files and its tests."""
