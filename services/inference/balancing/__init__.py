"""Load balancing: the order in which a model's deployments are called.

`choice` orders deployments, `affinity` identifies conversations, and `rate_limits` reads the rate
limits of a response; these are pure. `loads` has the state of deployments in one process,
`deployment_limits` the operator's limits on them. `balancer` combines them.
"""
