"""The command line. Importing it imports neither torch nor scipy: commands import what they call."""

from abelnet.cli.app import app, main

__all__ = ["app", "main"]
