"""Metrics of the file store."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge


class FileMetrics:
    """The counters of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.uploads = Counter("gateway_file_uploads", "Files kept.", registry=registry)
        self.upload_parts = Counter(
            "gateway_file_upload_parts", "Parts of uploads stored.", registry=registry
        )
        self.uploaded_bytes = Counter(
            "gateway_file_uploaded_bytes", "Bytes of files stored.", registry=registry
        )
        self.downloaded_bytes = Counter(
            "gateway_file_downloaded_bytes", "Bytes of files read.", registry=registry
        )
        self.page_lookups = Counter(
            "gateway_file_page_cache",
            "Lookups of pages of files in the cache of conversions: hit, miss",
            ["result"],
            registry=registry,
        )
        self.swept = Counter(
            "gateway_files_swept",
            "Objects deleted by the sweeper: expired files and uploads, bytes without a file.",
            ["what"],
            registry=registry,
        )
        # Set by the process that swept last.
        self.stored_files = Gauge(
            "gateway_stored_files",
            "Number of stored files, as of the last sweep.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self.stored_bytes = Gauge(
            "gateway_stored_bytes",
            "Total size of stored files in bytes, as of the last sweep.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
