"""Checks of this machine: disk, file descriptors, cores, ports, certificates, extras."""

import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from services.common.extras import EXTRAS, Extra, how_to_add, missing
from services.common.settings import Settings, Storage
from services.common.storage.disk import free_bytes
from services.doctor.findings import Finding, failure, ok, warning
from services.media.conversion.confinement import Protections, protections
from services.supervisor.process import StartError
from services.supervisor.resources import held_port
from services.supervisor.running import running_gateway

# File descriptors that a process needs for its maximum number of connections.
_DESCRIPTORS = 25_000
_FEWEST_DESCRIPTORS = 1024
_MIB = 1 << 20
# File systems on which SQLite's locks and shared memory do not work.
_NETWORK = ("nfs", "cifs", "smb", "fuse.sshfs", "fuse.s3fs", "9p", "glusterfs", "ceph")


def disk(storage: Storage) -> Iterator[Finding]:
    """Check the data folder: its permissions, its free space and its file system."""
    folder = storage.data_dir.absolute()
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        yield failure(
            "data folder",
            f"{place}: not writable for this user",
            "run as the user of the gateway, change the owner of the folder (chown), or set "
            "storage.data_dir",
        )
        return
    if place == folder and os.stat(folder).st_mode & 0o077:
        yield warning(
            "data folder",
            f"{folder}: other users have access",
            f"run chmod 700 {folder}; the gateway does so at its start if it is permitted to",
        )
    else:
        note = "" if place == folder else " (will be created)"
        yield ok("data folder", f"{folder}{note}")
    if (kind := _file_system(place)).startswith(_NETWORK):
        yield warning(
            "file system",
            f"{folder} is on {kind}, where SQLite's locks do not work",
            "use a local disk, or storage.database_url and storage.blob_url",
        )
    free = free_bytes(place)
    text = f"{free // _MIB} MiB free"
    if free < storage.min_free_bytes:
        yield failure(
            "disk",
            f"{text}: uploads and edits are rejected",
            f"free disk space: storage.min_free_bytes is {storage.min_free_bytes // _MIB} MiB",
        )
    elif free < 4 * storage.min_free_bytes:
        yield warning("disk", text, "free disk space, or move storage.data_dir to a larger disk")
    else:
        yield ok("disk", text)


def _file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the type of the file system of a path, or "" if it is unknown."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return ""
    above = {str(parent) for parent in (path, *path.parents)}
    mount_points = [(len(where), kind) for _, where, kind, *_ in lines if where in above]
    return max(mount_points, default=(0, ""))[1]


def descriptors() -> Finding:
    """Check the limit of open files and sockets of a process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= _DESCRIPTORS:
        return ok("descriptors", "enough for the maximum number of connections")
    connections = hard * 2 // 5
    make = failure if hard < _FEWEST_DESCRIPTORS else warning
    return make(
        "descriptors",
        f"{hard} per process, enough for {connections} connections",
        "raise the hard limit: LimitNOFILE= in systemd, ulimit -n, or ulimits in Docker",
    )


def cores(quota_file: Path = Path("/sys/fs/cgroup/cpu.max")) -> Finding:
    """Check that the default number of workers matches the available CPU cores."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    workers = min(count, 8)
    try:
        quota, period = quota_file.read_text().split()
        allowed = int(quota) / int(period)
    except (OSError, ValueError):
        allowed = float(count)
    if allowed + 0.5 < workers:
        return warning(
            "cores",
            f"{count} cores, of which this container may use {allowed:g}",
            f"start with `gateway up --workers {max(1, round(allowed))}`",
        )
    return ok("cores", f"{count}; `gateway up` starts {workers} workers")


def conversions(offered: Protections | None = None) -> Finding:
    """Check that the kernel can confine the processes that convert media."""
    offered = protections() if offered is None else offered
    if missing := offered.missing():
        return warning(
            "conversions",
            f"a document that takes over its conversion process can {missing}",
            "use Linux 5.13 or later on x86-64 or ARM64, with seccomp and Landlock (`landlock` in "
            "the kernel parameter `lsm`), and a container runtime that permits both",
        )
    return ok(
        "conversions",
        f"confined by seccomp and Landlock (version {offered.landlock}): no network, no files but "
        "libraries and fonts",
    )


def ports(settings: Settings) -> Iterator[Finding]:
    """Check that the ports are free, or used by the gateway of this data folder."""
    running = running_gateway(str(settings.storage.data_dir))
    holder = running.process if running else ""
    server = settings.server
    addresses = [
        ("server.port", server.host, server.port),
        ("server.metrics_port", server.metrics_host, server.metrics_port),
    ]
    if server.grpc:
        host, _, port = server.grpc.rpartition(":")
        addresses.append(("server.grpc", host.strip("[]"), int(port)))
    for name, host, number in addresses:
        try:
            with held_port(host, number, name):
                is_free, why = True, ""
        except StartError as error:
            is_free, why = False, str(error)
        if holder and not is_free:
            yield ok(name, f"{host}:{number} is used by the running gateway (process {holder})")
        elif holder and number:
            yield warning(
                name,
                f"{host}:{number} is free, but a gateway runs on this data folder (process "
                f"{holder})",
                "it was started with other settings: restart it",
            )
        elif is_free:
            yield ok(name, f"{host}:{number} is free" if number else "any free port")
        else:
            yield failure(name, why, "stop the program that uses the port, or choose another port")


def certificates(settings: Settings) -> Iterator[Finding]:
    """Check that the files of certificates and keys are readable and match."""
    server, grpc, envoy = settings.server, settings.grpc, settings.envoy
    pairs = [
        ("server.tls_certificate", server.tls_certificate, server.tls_key, server.tls_client_ca),
        ("grpc.certificate", grpc.certificate, grpc.private_key, grpc.client_ca),
        ("envoy.certificate", envoy.certificate, envoy.private_key, envoy.client_ca),
        (
            "envoy.upstream_certificate",
            envoy.upstream_certificate,
            envoy.upstream_private_key,
            envoy.upstream_ca,
        ),
    ]
    for name, certificate, key, authority in pairs:
        if certificate:
            yield _certificate(name, certificate, key, authority)


def _certificate(name: str, certificate: str, key: str, authority: str) -> Finding:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
        if authority:
            context.load_verify_locations(authority)
    except OSError as error:
        return failure(
            name,
            f"{certificate}: {error}",
            "set PEM files of a matching certificate and key that this user may read",
        )
    return ok(name, certificate)


def extras(extras_by_name: Mapping[str, Extra] = EXTRAS) -> Sequence[Finding]:
    """Check which extras of the package are installed."""
    absent = missing(extras_by_name)
    findings = []
    for name, extra in extras_by_name.items():
        if name not in absent:
            findings.append(ok(f"extra {name}", "installed"))
        elif extra.is_usual:
            text = f"not installed: {extra.without}"
            findings.append(warning(f"extra {name}", text, how_to_add(name)))
        else:
            findings.append(ok(f"extra {name}", f"not installed: {extra.without}"))
    return findings
