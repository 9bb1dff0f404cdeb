"""Providers that administrators add while the gateway runs, with encrypted keys.

`sealing` encrypts keys, `repository` stores the providers, and `servicer` is the gRPC servicer.
"""
