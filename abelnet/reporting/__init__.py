"""One table type and its renderers, plots, and the pages made of them."""
