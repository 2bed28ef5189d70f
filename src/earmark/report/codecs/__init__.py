"""Reports on codecs: what is kept against the rate, as text, figures and one HTML page."""
