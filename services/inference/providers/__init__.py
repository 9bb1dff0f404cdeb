"""Providers: one file each, mapping the canonical conversation to a wire and back."""
