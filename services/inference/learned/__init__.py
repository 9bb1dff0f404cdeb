"""What models refuse, learned from the error responses of their providers."""
