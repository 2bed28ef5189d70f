"""Architectures as torch modules, with parameters named as in published checkpoints; each is imported when opened."""
