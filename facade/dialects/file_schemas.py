"""JSON schemas of files in both formats, of their forms, and of uploads in parts."""

from typing import Final

from facade.dialects.json_schemas import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    STRING,
    UNIX_SECONDS,
    NamedSchema,
    described,
    open_object,
)
from facade.dialects.purposes import PURPOSES
from services.common.settings import MAX_FILE_LIFETIME_S

OPENAI_FILE: Final = NamedSchema(
    "FormatAFile",
    open_object(
        {
            "object": {"const": "file"},
            "id": STRING,
            "bytes": INTEGER,
            "created_at": UNIX_SECONDS,
            "expires_at": UNIX_SECONDS,
            "filename": STRING,
            "purpose": {"enum": list(PURPOSES)},
            "status": {"const": "processed"},
        },
        optional=["status"],
    ),
)
ANTHROPIC_FILE: Final = NamedSchema(
    "FormatBFile",
    open_object(
        {
            "id": STRING,
            "type": {"const": "file"},
            "filename": STRING,
            "created_at": DATE_TIME,
            "expires_at": DATE_TIME,
            "mime_type": STRING,
            "size_bytes": INTEGER,
            "downloadable": BOOLEAN,
        },
        optional=["expires_at"],
    ),
)
FORM: Final = NamedSchema(
    "FileForm",
    open_object(
        {
            "file": {
                "type": "string",
                "format": "binary",
                "description": "Must have a filename.",
            },
            "purpose": {
                "enum": list(PURPOSES),
                "description": "Optional for clients that send `anthropic-version`.",
            },
            "expires_after": described(
                STRING,
                'JSON, such as {"anchor": "created_at", "seconds": 3600}; or send the fields '
                "`expires_after[anchor]` and `expires_after[seconds]`. 30 days if omitted.",
            ),
            "expires_in_seconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_FILE_LIFETIME_S,
                "description": "Seconds until expiration, for clients that send "
                "`anthropic-version`.",
            },
        },
        optional=["expires_after", "expires_in_seconds"],
    ),
)
UPLOAD: Final = NamedSchema(
    "Upload",
    open_object(
        {
            "object": {"const": "upload"},
            "id": STRING,
            "bytes": INTEGER,
            "created_at": UNIX_SECONDS,
            "expires_at": UNIX_SECONDS,
            "filename": STRING,
            "purpose": {"enum": list(PURPOSES)},
            "status": {"enum": ["pending", "completed", "cancelled"]},
            "file": described(
                {"type": ["object", "null"]}, "The file, in the format of files, once completed."
            ),
        }
    ),
)
UPLOAD_PART: Final = NamedSchema(
    "UploadPart",
    open_object(
        {
            "object": {"const": "upload.part"},
            "id": STRING,
            "created_at": UNIX_SECONDS,
            "upload_id": STRING,
        }
    ),
)
PART_FORM: Final = NamedSchema(
    "UploadPartForm",
    open_object(
        {
            "data": {
                "type": "string",
                "format": "binary",
                "description": "Content of the part, at most as long as the file.",
            }
        }
    ),
)
