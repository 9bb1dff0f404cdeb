"""Rules of a request: its validation, its fields, and changes of it."""
