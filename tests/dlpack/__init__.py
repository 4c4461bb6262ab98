"""Tensor exchange: our producers, our consumer, and the libraries on the other side."""
