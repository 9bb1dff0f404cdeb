"""The configuration of an Envoy in front of the gateway, and its process."""
