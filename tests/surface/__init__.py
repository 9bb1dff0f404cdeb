"""The whole surface of the official SDKs, held against one table of what becomes of each part."""
