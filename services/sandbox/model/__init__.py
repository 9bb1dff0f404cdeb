"""The sandbox's models: pure functions from a canonical request to an answer."""
