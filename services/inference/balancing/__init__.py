"""Load balancing: which of a model's deployments is asked, and which next if it fails.

`choice` orders deployments, `affinity` recognizes conversations, `rate_limits` reads what a
response says of limits; these are pure. `loads` holds what one process knows of deployments, and
`balancer` puts them together.
"""
