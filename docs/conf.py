"""Sphinx configuration."""

import abelnet

project = "abelnet"
author = "The abelnet developers"
copyright = "The abelnet developers"
release = version = abelnet.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "abelnet"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_custom_sections = [("Arguments", "params_style")]
# Two classes are named Candidate: of searches for hyperparameters, and for laws.
suppress_warnings = ["ref.python"]
