"""Architectures written as torch modules; imported only when a model of the family is opened."""
