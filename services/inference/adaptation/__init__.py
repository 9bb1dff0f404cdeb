"""Convert media that the target of a request cannot read.

`rules` selects a conversion for each medium, `session` runs the conversions of one request,
`helpers` calls the models that describe and transcribe, and `wording` writes the text blocks that
replace media. The conversions themselves, and the cache of their results, are in
`services.media.conversion`.
"""
