"""The recording: raw slices in a file, writer and reader side by side.

Layout: MAGIC, then blocks of (length u32, crc32 u32, zlib-compressed bytes), all little endian. The first block is the
header as JSON; every other block is one slice: the length of its JSON part (u32), the JSON (scalars, records, machine,
lengths of the buffers), then refs, counts, levels, periods. The same slices always make the same bytes, so recording
a replay reproduces the file. Each slice is flushed whole: what was written before a crash can be replayed.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import BinaryIO

from pmutop.errors import BadInput, PmutopError
from pmutop.events import Event
from pmutop.slices import Born, Exited, Header, RawSlice, Record, Renamed, Task

MAGIC = b"pmutop\x00\x01"
SCHEMA = 1
BLOCK = struct.Struct("<II")
LENGTH = struct.Struct("<I")
BUFFERS = ("refs", "counts", "levels", "periods")
KINDS = {"born": Born, "renamed": Renamed, "exited": Exited}
KIND_OF = {kind: name for name, kind in KINDS.items()}
LARGEST = 1 << 30  # no block is larger; a length beyond it is damage, not a slice


class Recorder:
    """Writes slices to `path` (mode 0600). cmdlines: False leaves command lines out, for they may hold secrets."""

    def __init__(self, path: str, header: Header, cmdlines: bool = True, force: bool = False) -> None:
        self.path = path
        self.cmdlines = cmdlines
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if force else os.O_EXCL)
        try:
            self.file: BinaryIO = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
        except FileExistsError:
            raise PmutopError(f"{path} exists already", "name another file, or add --force") from None
        except OSError as error:
            raise PmutopError(
                f"cannot write {path}: {error.strerror}", "name a file in a folder that you may write to"
            ) from None
        self.put(MAGIC + sealed(json.dumps({"schema": SCHEMA, **asdict(header)}).encode()))

    def write(self, raw: RawSlice) -> None:
        """Append one slice; raises PmutopError when the disk is full (what was written before stays readable)."""
        self.put(sealed(encode(raw, self.cmdlines)))

    def put(self, data: bytes) -> None:
        size = self.file.tell()
        try:
            written = self.file.write(data)
            cause = "the disk is full" if written != len(data) else None
        except OSError as error:
            cause = error.strerror
        if cause:
            with contextlib.suppress(OSError):  # a device has no size
                self.file.truncate(size)
            raise PmutopError(
                f"cannot write {self.path}: {cause}", "what was recorded until now can be replayed"
            )

    def close(self) -> None:
        self.file.close()


def sealed(payload: bytes) -> bytes:
    packed = zlib.compress(payload, 1)
    return BLOCK.pack(len(packed), zlib.crc32(packed)) + packed


def encode(raw: RawSlice, cmdlines: bool = True) -> bytes:
    """One slice as bytes, the same for equal slices."""
    facts = {
        "number": raw.number,
        "start": raw.start,
        "end": raw.end,
        "wall": raw.wall,
        "late": raw.late,
        "records": [encode_record(record, cmdlines) for record in raw.records],
        "machine": raw.machine,
        "lengths": [len(getattr(raw, name)) for name in BUFFERS],
    }
    text = json.dumps(facts, separators=(",", ":")).encode()
    return LENGTH.pack(len(text)) + text + b"".join(bytes(getattr(raw, name)) for name in BUFFERS)


def encode_record(record: Record, cmdlines: bool) -> list:
    name = KIND_OF[type(record)]
    if isinstance(record, Exited):
        return [name, record.ref]
    task = record.task if cmdlines else record.task._replace(cmdline="")
    return [name, *task]


def decode(payload: bytes) -> RawSlice:
    (size,) = LENGTH.unpack_from(payload)
    facts = json.loads(payload[LENGTH.size : LENGTH.size + size])
    lengths = facts.pop("lengths")
    at = LENGTH.size + size
    buffers = {}
    for name, length in zip(BUFFERS, lengths, strict=True):
        buffers[name] = payload[at : at + length]
        at += length
    if at != len(payload):
        raise ValueError("the buffers do not fill the slice")
    facts["records"] = tuple(decode_record(item) for item in facts["records"])
    return RawSlice(**facts, **buffers)


def decode_record(item: list) -> Record:
    name, *rest = item
    return Exited(*rest) if name == "exited" else KINDS[name](Task(*rest))


class Reader:
    """A recording as a Source: iterates its slices once, then stops.

    A file that is not a recording raises BadInput at once. Damage further on ends the iteration after the last whole
    slice and is told in `damage` (None while all is well).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.damage: str | None = None
        self.stopped = False
        try:
            self.file: BinaryIO = open(path, "rb")
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from None
        if self.file.read(len(MAGIC)) != MAGIC:
            raise BadInput(f"{path} is not a pmutop recording", "`pmutop record FILE` makes one")
        try:
            facts = json.loads(self.block() or b"null")
            schema = facts.pop("schema")
            if schema != SCHEMA:
                raise BadInput(f"{path} is a recording of schema {schema}, this pmutop reads {SCHEMA}")
            facts["events"] = tuple(Event(**event) for event in facts["events"])
            self.header = Header(**facts)
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
            raise BadInput(f"{path}: the header is damaged", "nothing can be replayed without it") from None

    def block(self) -> bytes | None:
        """The next block unpacked; None at the end of the file. Raises ValueError or zlib.error on damage."""
        head = self.file.read(BLOCK.size)
        if not head:
            return None
        if len(head) < BLOCK.size:
            raise ValueError("truncated")
        length, check = BLOCK.unpack(head)
        packed = self.file.read(length) if length <= LARGEST else b""
        if len(packed) != length:
            raise ValueError("truncated")
        if zlib.crc32(packed) != check:
            raise ValueError("checksum differs")
        return zlib.decompress(packed)

    def __iter__(self) -> Iterator[RawSlice]:
        while not self.stopped:
            place = self.file.tell()
            try:
                payload = self.block()
                if payload is None:
                    return
                raw = decode(payload)
            except (ValueError, KeyError, TypeError, struct.error, zlib.error) as error:
                self.damage = (
                    f"{self.path}: damaged at byte {place} ({error}); everything before it was replayed"
                )
                return
            yield raw

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.file.close()
