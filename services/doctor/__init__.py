"""Checks of what a gateway needs, with what to do about each that fails: `gateway doctor`."""
