"""Architectures whose parameters are named as in published checkpoints; the only codec modules that import torch."""
