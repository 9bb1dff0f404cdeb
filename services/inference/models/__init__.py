"""The models that can be called: by which names, where they are, and what they read."""
