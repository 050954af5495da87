"""Sphinx configuration."""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import abelnet

project = "abelnet"
author = "The abelnet developers"
copyright = "The abelnet developers"
release = version = abelnet.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "abelnet"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_custom_sections = [("Arguments", "params_style")]
# Two classes are named Candidate: of searches for hyperparameters, and for laws.
suppress_warnings = ["ref.python"]


def resolve_public_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Links a public name, such as abelnet.Operation, to the module that defines it, where it is documented."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("abelnet."):
        return None
    path = target.split(".")
    for end in range(len(path) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(path[:end]))
        except ImportError:
            continue
        try:
            home = getattr(value, path[end]).__module__
        except AttributeError:
            return None
        full = ".".join([home, *path[end:]])
        if full == target:
            return None
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], full, node, contnode)
    return None


def skip_field(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leaves out the fields of named tuples, which the docstring of the class describes."""
    return True if type(value).__name__ == "_tuplegetter" else None


def visit_math(translator: Any, node: Any) -> None:
    """Writes a formula as MathML, which browsers typeset without a script and without a network."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: Any) -> None:
    """Writes a formula on lines of its own."""
    text = node.astext()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    translator.body.append(f'<div class="math">{convert(text, display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("missing-reference", resolve_public_name)
    app.connect("autodoc-skip-member", skip_field)
