"""The process between pytest and Valgrind."""
