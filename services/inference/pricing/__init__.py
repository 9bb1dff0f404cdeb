"""The costs of requests: prices of models, and the arithmetic.

`price` computes a cost from counts of billed units, `counts` gets the counts from a provider's
usage, `price_list` finds published prices, and `costs` chooses the price of a model: that of the
model in the settings, that of its provider in the settings, or the published one. An unknown cost
is None, never 0.
"""
