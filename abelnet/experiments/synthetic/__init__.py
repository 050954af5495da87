"""The synthetic experiment of the paper: five operations, learned from small multisets, applied to large ones."""
