"""Runs of codecs: sounds coded, decoded, measured and reported."""
