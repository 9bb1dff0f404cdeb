"""The endpoints, one file an area."""
