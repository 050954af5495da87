"""The analogy experiment of the paper: trained on BATS, tested on BATS and on the Google questions."""
