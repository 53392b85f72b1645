"""Environments to learn from and to compare with."""
