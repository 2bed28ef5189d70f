"""Runs of representations: sounds to vectors, scores and a report."""
