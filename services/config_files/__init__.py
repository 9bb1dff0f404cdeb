"""Settings files that commands write: a first one, and those of other gateways translated."""
