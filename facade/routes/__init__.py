"""The endpoints, one module per area."""
