"""Codec runs: clips through codecs to rates, scores and a report, as stages on `earmark.runs`."""
