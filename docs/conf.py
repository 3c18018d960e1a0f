"""How Sphinx builds the site from these pages; `make site` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import equipoise

sys.path.append(str(Path(__file__).parent / "extensions"))

project = "equipoise"
version = release = equipoise.__version__
copyright = "the equipoise developers"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "checks",
    "commands",
    "docstrings",
    "listings",
    "searched",
]
exclude_patterns = ["figures", "extensions"]
nitpicky = True
suppress_warnings = ["toc.empty_glob"]  # a list by name may be complete
# Types of other packages, and our own private ones, have no page; text in backticks is often code and not a name.
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", ".*")]

# ---- pages
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

# ---- docstrings
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
autosummary_generate = False
napoleon_google_docstring = False
toc_object_entries_show_parents = "hide"

# ---- how it looks: everything comes from this site, so that it also works without a network
html_theme = "furo"
html_title = f"equipoise {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
