"""Which file systems keep the promise of a lock: that no two processes hold it, on whichever machine they run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolcrib.ground.files.faults import show
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from pathlib import Path

# Local ones, whose locks one kernel keeps, by the number that statfs gives. Not among them: NFS, SMB, AFS, Ceph and the like,
# FUSE and 9p (folders of another machine, of the host of a virtual machine, of Windows), whose other side may lock without
# this kernel knowing of it; FAT, which cannot give a file a second name.
LOCAL = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x2FC12FC1: "zfs",
    0xF2F52010: "f2fs",
    0xCA451A4E: "bcachefs",
    0x794C7630: "overlayfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
}
REMOTE = {
    0x6969: "NFS",
    0xFE534D42: "SMB",
    0xFF534D42: "SMB",
    0x517B: "SMB",
    0x65735546: "FUSE",
    0x01021997: "9p",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x4D44: "FAT",
}

_STATFS_BYTES = 512  # more than the structure has on any system; its kind comes first
_NUMBER = 0xFFFFFFFF


def check_lockable(folder: Path) -> None:
    """Refuse a folder on a file system whose locks other machines might not see."""
    number = kind_of(folder)
    if number in LOCAL:
        return
    name = REMOTE.get(number, f"a file system of the unknown kind {number:#x}")
    message = (
        f"{show(str(folder))} lies on {name}, whose locks may not hold between processes; "
        f"keep the project on a local disk ({', '.join(LOCAL.values())})"
    )
    raise ToolError(Kind.PERMANENT, message, details={"path": str(folder), "file_system": name})


def kind_of(folder: Path) -> int:
    """The number of the file system's kind."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.statfs(os.fsencode(folder), status):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return ctypes.c_long.from_buffer(status).value & _NUMBER
