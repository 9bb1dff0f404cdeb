"""Turns in progress: context for the model, reconciliation and commit."""
