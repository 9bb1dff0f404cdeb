"""Calls between the services: servers, channels, authentication, limits."""
