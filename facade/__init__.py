"""HTTP API: validates requests, translates them, calls the services and translates replies.

It holds no business rules and no state, and imports no service.
"""
