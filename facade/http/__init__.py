"""HTTP connections: their limits, their requests and responses, and refused heads."""
