"""Uploads and downloads of files over HTTP."""
