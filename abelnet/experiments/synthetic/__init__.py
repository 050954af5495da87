"""Synthetic experiment of the paper: size generalization of five operations learned from small multisets."""
