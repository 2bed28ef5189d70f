"""Models in formats of others (ONNX, TorchScript, HEAR, mteb, sentence-transformers, a function) as extractors."""
