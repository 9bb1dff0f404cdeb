"""Blob stores for the bytes of files: a local folder, or a bucket of an S3 server.

A blob becomes visible under its key only as a whole, and is durable once `Writing.finish`
returns. At most a few MiB of a blob are in memory. Errors of a store are logged and raised
as `storage_unavailable`; the next call tries again.
"""

from datetime import timedelta

from services.common.settings import SettingsError, Storage
from services.files.blob_store import Blobs
from services.files.bucket_blobs import BucketBlobs
from services.files.folder_blobs import FolderBlobs

FOLDER = "files"


def open_blobs(storage: Storage) -> Blobs:
    """Return the store that the settings name, without connecting to it.

    Credentials, region and endpoint of S3 come from the usual AWS_… variables.

    Raises:
        SettingsError: `storage.blob_url` is not the URL of a bucket, or the folder cannot
            be created.
    """
    if not storage.blob_url:
        return FolderBlobs.at(storage.data_dir / FOLDER)
    scheme, _, place = storage.blob_url.partition("://")
    bucket, _, prefix = place.partition("/")
    if scheme != "s3" or not bucket:
        raise SettingsError(
            "storage.blob_url: must be s3://bucket or s3://bucket/prefix; leave it empty for the "
            f"folder {FOLDER} in storage.data_dir"
        )
    from obstore.store import S3Store

    return BucketBlobs(
        S3Store(
            bucket,
            prefix=prefix.strip("/") or None,
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=5),
                "timeout": timedelta(seconds=60),
            },
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=15)},
        )
    )
