"""Results as people read them: one table type, and its renderers for the terminal, Markdown and HTML."""
