"""A request from its check to the run of its plan."""
