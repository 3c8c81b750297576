"""What Hermes finds in its plugin folder: the plugin that is installed as a Python package."""

from hermes_workflows.hermes_plugin import register

__all__ = ["register"]
