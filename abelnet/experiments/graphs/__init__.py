"""Graph experiment: message-passing networks that must learn how neighbors are aggregated, on graphs of two sizes."""
