"""Files of this machine and files elsewhere, by one name: `locate` makes a path of a path or of a URL.

    locate("run/scores.csv")                 pathlib.Path, as ever
    locate("s3://bucket/run/scores.csv")     RemotePath: the same verbs over fsspec (s3, gs, az, memory, sftp, https …)

A remote file appears whole or not at all, is read by byte ranges, and is asked for again when a connection is cut.
A password in an address is refused, and a signature is used to read and never shown.
"""

from __future__ import annotations

from earmark.places._keys import is_signed, shown, without_keys
from earmark.places._locating import is_remote, is_url, locate, read_heads, showing_transfers, sizes_in, which_exist
from earmark.places._remote import RemotePath
from earmark.places._requests import PATIENCE

__all__ = [
    "PATIENCE",
    "RemotePath",
    "is_remote",
    "is_signed",
    "is_url",
    "locate",
    "read_heads",
    "showing_transfers",
    "shown",
    "sizes_in",
    "which_exist",
    "without_keys",
]
