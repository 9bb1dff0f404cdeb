"""Callers' dialects: translation between their JSON and the canonical model, one package each."""
