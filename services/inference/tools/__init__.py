"""Tools that the gateway runs for models: web search, web fetch and file search.

::

    loop        runs rounds until the model calls no more gateway tools
    rounds      builds the request of each round, with `offer` and `history`
    round       translates the events of one round, with `citations` and `usage`
    running     runs tool calls
    search      the interface of search backends
    backends    SearXNG, Brave, Tavily
    domains     domain rules of searches and fetches
    pages       fetches URLs as text
    file_search searches vector stores
    quoting     marks web content as data
"""
