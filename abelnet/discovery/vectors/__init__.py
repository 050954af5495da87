"""Laws on vectors, whose coordinates mix, by additive invariants."""
