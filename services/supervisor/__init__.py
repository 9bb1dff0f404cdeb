"""Starts the worker processes of a gateway, restarts those that die, and stops them."""
