"""The HTTP surface: checks shapes, translates, calls the services, translates back.

It holds no rule and no state, and imports no service.
"""
