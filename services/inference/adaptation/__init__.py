"""Convert media that the target of a request cannot read.

`rules` selects a conversion for each medium, `session` runs the conversions of one request,
`helpers` calls the models that describe and transcribe, `wording` writes the text blocks that
replace media, and `cache` stores results. The conversions themselves are in
`services.media.conversion`.
"""
