"""The gateway's own tools: searching the web and fetching its pages, while a model answers."""
