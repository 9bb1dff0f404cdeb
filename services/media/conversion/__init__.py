"""Convert media into formats that other models read: documents, images, recordings, films, web
pages.

Conversions run in worker processes; only these import the conversion libraries. Inputs and results
are defined in `parts`, the interface in `converter`.
"""
