"""Tools that the gateway runs for models: web search and web fetch.

::

    search      what a search backend is, and what all of them share
    backends    SearXNG, Brave, Tavily
    domains     which domains a search or a fetch is kept to
    pages       an address made into text
    quoting     how what came from the web is marked as data
"""
