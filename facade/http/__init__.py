"""HTTP connections before and around a request: bounds, refusals, and who may connect."""
