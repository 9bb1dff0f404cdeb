"""Media of requests: fetched from addresses, and converted into what models read."""
