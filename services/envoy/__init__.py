"""The configuration of an Envoy in front of the gateway, and the process that runs it."""
