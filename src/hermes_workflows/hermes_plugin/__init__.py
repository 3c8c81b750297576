"""The plugin for Hermes Agent. Hermes imports this package at every start, so it imports next to nothing itself."""

from __future__ import annotations

from .offers import register

__all__ = ["register"]
