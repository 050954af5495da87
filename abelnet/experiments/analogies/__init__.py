"""Word analogy experiment of the paper: training on BATS, testing on BATS and the Google analogy test set."""
