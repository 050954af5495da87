"""Experiments of the paper, certificates and universality."""
