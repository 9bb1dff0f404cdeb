"""Media turned into what the target of a request reads.

`rules` decides what becomes of each medium, `session` does it for one request, `helpers` asks
the models that describe and transcribe, `wording` writes what stands in a medium's place, and
`cache` keeps what was made. Conversions themselves are in `services.inference.conversion`.
"""
