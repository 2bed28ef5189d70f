"""Codecs that are neural networks: their settings, their checkpoints, and how tokens are made of sound."""
