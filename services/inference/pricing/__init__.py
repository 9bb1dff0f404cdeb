"""What requests cost: prices of models, and the arithmetic.

`price` computes a cost from token counts, `counts` takes those from a provider's usage,
`price_list` finds published prices, and `costs` chooses the price of a model: of the settings, of
its provider in the settings, or the published one. A cost that is not known is None, never 0.
"""
