"""Modules whose optional packages are not in the extra ``dev`` are not searched for docstring examples."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("lightning") else ["abelnet/integrations/lightning.py"]
