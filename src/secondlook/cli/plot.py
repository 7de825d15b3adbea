"""Curves of verbs; drawn by `secondlook.evaluate.curve`."""

from secondlook.evaluate.curve import plotted

__all__ = ["plotted"]
