"""What a matrix of scores says about its own datasets and models: relations, a representative subset, predictions."""
