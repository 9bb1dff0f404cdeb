"""Metrics of a facade's process."""
