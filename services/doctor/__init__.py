"""Checks of a gateway's requirements, with advice for each problem: `gateway doctor`."""
