"""The command groups of `gateway`, one module per group."""
