"""JSON of documents: the types of blocks, references and styles, and their size limits.

The article service validates requests with these types, and the facade describes its requests with
them in the OpenAPI document.
"""
