"""From an address in a process to the function it is in: ELF symbol tables, and the map files that JIT compilers leave.

Sources: elf(5); Linux, tools/perf/Documentation/jit-interface.txt (/tmp/perf-PID.map: start, size in hexadecimal, name).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

ELF64, LITTLE = 2, 1
SYMTAB, DYNSYM = 2, 11  # section types
LOAD = 1  # of a program header
FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
#: Bytes of an executable file that are read at most.
LARGEST = 1 << 30


@dataclass
class Functions:
    """Sorted, non-empty address ranges with names."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, found: list[tuple[int, int, str]]) -> Functions:
        """From (start, size, name) in any order; size 0 = up to the next one."""
        if not found:
            return cls()
        rows = sorted(set(found))
        starts = [row[0] for row in rows]
        following = starts[1:] + [1 << 64]
        return cls(
            starts,
            [at + size if size else end for (at, size, _), end in zip(rows, following, strict=True)],
            [r[2] for r in rows],
        )

    def at(self, address: int) -> str:
        place = bisect_right(self.starts, address) - 1
        return self.names[place] if place >= 0 and address < self.ends[place] else ""


class ElfFile:
    """The functions of one ELF64 little-endian file; empty for any other file."""

    def __init__(self, path: str) -> None:
        self.segments: list[tuple[int, int, int]] = []  # (file offset, address, bytes)
        self.functions = Functions()
        try:
            with open(path, "rb") as file:
                data = file.read(LARGEST)
            if data[:6] == bytes((0x7F, 0x45, 0x4C, 0x46, ELF64, LITTLE)):
                self.read(data)
        except (OSError, struct.error, IndexError):
            pass  # gone, not ours to read, or damaged: its functions have no names

    def read(self, data: bytes) -> None:
        programs, sections = struct.unpack_from("<QQ", data, 32)
        program_size, programs_count, section_size, sections_count = struct.unpack_from("<HHHH", data, 54)
        for at in range(programs_count):
            kind, _, offset, address, _, size = struct.unpack_from(
                "<IIQQQQ", data, programs + at * program_size
            )
            if kind == LOAD:
                self.segments.append((offset, address, size))
        heads = [
            struct.unpack_from("<IIQQQQIIQQ", data, sections + at * section_size)
            for at in range(sections_count)
        ]
        found = []
        for head in heads:
            if head[1] not in (SYMTAB, DYNSYM):
                continue
            text = heads[head[6]][4]
            for at in range(head[4], head[4] + head[5], 24):
                name, info, _, section, address, size = struct.unpack_from("<IBBHQQ", data, at)
                if info & 15 in FUNCTIONS and section and address:
                    end = data.index(b"\0", text + name)
                    found.append((address, size, data[text + name : end].decode(errors="replace")))
        self.functions = Functions.of(found)

    def at(self, offset: int) -> str:
        """The function at an offset of the file."""
        for start, address, size in self.segments:
            if start <= offset < start + size:
                return self.functions.at(offset - start + address)
        return ""

    def offset(self, function: str) -> int | None:
        """Where in the file a function begins; None if the file has no such function."""
        if function in self.functions.names:
            begins = self.functions.starts[self.functions.names.index(function)]
            for start, address, size in self.segments:
                if address <= begins < address + size:
                    return begins - address + start
        return None


class Symbols:
    """Names addresses of living processes; files are read once, maps when an address is not in the known ones."""

    def __init__(self, proc: Path = Path("/proc"), jit: Path = Path("/tmp")) -> None:
        self.proc, self.jit = proc, jit
        self.files: dict[tuple[str, int, int], ElfFile] = {}
        self.maps: dict[int, list[tuple[int, int, int, str]]] = {}  # pid -> (start, end, file offset, path)
        self.jits: dict[int, tuple[int, Functions]] = {}  # pid -> (bytes of the map file then, functions)

    def name(self, pid: int, address: int) -> str:
        """'function', '[file]' where the file has no name for it, '[unknown]' for an address in no map."""
        found = self.mapped(pid, address)
        if found is None:
            self.maps[pid] = self.read_maps(pid)
            found = self.mapped(pid, address)
        if found is None:
            return self.jit_name(pid, address) or "[unknown]"
        start, _, offset, path = found
        if not path.startswith("/"):
            return self.jit_name(pid, address) or path or "[unknown]"
        return self.file(pid, path).at(address - start + offset) or f"[{path.rpartition('/')[2]}]"

    def mapped(self, pid: int, address: int) -> tuple[int, int, int, str] | None:
        return next((one for one in self.maps.get(pid, ()) if one[0] <= address < one[1]), None)

    def read_maps(self, pid: int) -> list[tuple[int, int, int, str]]:
        """Every mapping, executable or not: a simulated program's code is data to the emulator that runs it."""
        rows = []
        try:
            for line in (self.proc / str(pid) / "maps").read_text(errors="replace").splitlines():
                words = line.split(None, 5)
                start, _, end = words[0].partition("-")
                rows.append(
                    (int(start, 16), int(end, 16), int(words[2], 16), words[5] if len(words) > 5 else "")
                )
        except OSError:
            return self.maps.get(pid, [])  # it has ended: what was known is still true of its past
        return rows

    def file(self, pid: int, path: str) -> ElfFile:
        seen = self.proc / str(pid) / "root" / path.lstrip("/")  # its own root: containers
        try:
            facts = seen.stat()
            key = (path, facts.st_ino, facts.st_mtime_ns)
        except OSError:
            seen, key = Path(path), (path, 0, 0)
        if key not in self.files:
            self.files[key] = ElfFile(str(seen))
        return self.files[key]

    def jit_name(self, pid: int, address: int) -> str:
        path = self.jit / f"perf-{pid}.map"
        try:
            size = path.stat().st_size
        except OSError:
            return ""
        if pid not in self.jits or self.jits[pid][0] != size:
            found = []
            for line in path.read_text(errors="replace").splitlines():
                words = line.split(None, 2)
                if len(words) == 3:
                    try:
                        found.append((int(words[0], 16), int(words[1], 16), words[2]))
                    except ValueError:
                        continue  # a line that is being written
            self.jits[pid] = (size, Functions.of(found))
        return self.jits[pid][1].at(address)
