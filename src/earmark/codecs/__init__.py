"""Codecs: what is kept of a sound, and at what rate."""
