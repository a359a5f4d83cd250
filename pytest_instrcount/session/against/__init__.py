"""Base against head: the tests of another commit, measured in the same job, in place of baselines."""
