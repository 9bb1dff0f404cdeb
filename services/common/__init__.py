"""Code that several services use and none owns."""
