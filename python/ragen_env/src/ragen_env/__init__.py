"""Serves environments written in Python to RAGEN over JSON Lines.

``python -m ragen_env my_module:MyEnv`` is the usual way; :func:`serve` does the same from a program of one's own.
"""

from .server import serve

__all__ = ["serve"]
__version__ = "0.1.0"
