"""Sphinx, for `make docs`. Strict and offline: every warning is an error, nothing is fetched."""

from importlib.metadata import version as installed_version

project = "hermes-workflows"
copyright = "the hermes-workflows contributors"
author = "the hermes-workflows contributors"
release = installed_version("hermes-workflows")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False
