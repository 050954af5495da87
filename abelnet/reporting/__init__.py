"""Reports: one table type, with renderers for the terminal, Markdown and HTML."""
