"""The inference service: generates answers with the models of several providers."""
