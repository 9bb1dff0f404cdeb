"""Limits on the requests of a caller: admission before a request, settlement after it.

`limiter` admits a request of a caller with limits, and settles it once it has been answered
(`services.inference.allowances`). `reservation` computes what a request may use at most, with its
input (`input_tokens`) and its fees (`fees`). `subjects` compares the models that it names
(`named_models`) with those that its caller may use.
"""
