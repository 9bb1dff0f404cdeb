"""Answers of language models, whichever provider serves them."""
