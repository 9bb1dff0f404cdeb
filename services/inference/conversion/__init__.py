"""Media turned into what other models can read: documents, images, recordings, films, web pages.

The work is done in processes of its own, which alone import the libraries for it. What goes
in and comes out is in `parts`; `converter` says what can be asked.
"""
