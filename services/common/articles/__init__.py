"""JSON of documents: the types of blocks, references and styles, and how large they may be.

Both sides of the article service use these types: it checks what callers send by them, and the
facade describes its requests with them in the OpenAPI document.
"""
