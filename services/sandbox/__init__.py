"""A model that is none: deterministic answers without a network.

It is the gateway's embedded provider (`services.inference.providers.sandbox`), and
an HTTP upstream that speaks two dialects (`upstream`), so that whoever writes
against a provider can do so without one. `behaviours` tells what it does.
"""
