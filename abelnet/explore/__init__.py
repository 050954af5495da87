"""Local web page: learn a law from a pasted table, ask analogies, and watch models drift apart on large multisets."""
