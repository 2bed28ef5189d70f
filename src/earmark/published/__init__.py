"""The printed results of the papers, as score tables with their provenance."""
