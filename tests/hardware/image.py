"""What the guest is made of: Debian's kernel and Python, wheels, and the package cross-built; all kept in one folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
PYTHON = "python3.11"  # Debian 12's; the extension is built for it
QEMU = "qemu-system-aarch64"
CC = "aarch64-linux-gnu-gcc"
WHEELS = ["numpy>=2.0", "platformdirs>=4"]  # what `pmutop log` may import
INSIDE, TRAINING = HERE / "inside", REPOSITORY / "pmutop/training"
WORKLOADS = TRAINING / "programs"
#: C programs and where they lie: process 1, loops of known length, and of the labelled workloads those that are run for labels.
PROGRAMS = {
    "init": INSIDE,
    "spin": INSIDE,
    "phases": INSIDE,
    "micro": TRAINING,
    "hw_fpu": WORKLOADS,
    "os_fault": WORKLOADS,
    "os_syscall": WORKLOADS,
    "os_runqueue": WORKLOADS,
}
#: Never needed in the guest, and half of its image otherwise.
LEFT_OUT = (
    "usr/share",
    "var",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "lib2to3",
    "ensurepip",
    "pydoc_data",
    "include",
)


class Unavailable(Exception):
    """The guest cannot be made on this machine; the message says what is absent."""


def reason_to_skip() -> str | None:
    """Why no guest can be booted here, or None."""
    for program, package in (
        (QEMU, "qemu-system-arm"),
        (CC, "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
        ("apt-get", "apt (the guest is made of Debian packages)"),
        ("dpkg-deb", "dpkg"),
    ):
        if shutil.which(program) is None:
            return f"{program} is absent: apt-get install {package}"
    if f"python{sys.version_info[0]}.{sys.version_info[1]}" != PYTHON:
        return f"the extension is cross-built for the guest's {PYTHON}, and this is Python {sys.version.split()[0]}"
    try:
        cache_folder()
    except OSError as error:
        return f"no folder to keep the guest in: {error} (set PMUTOP_GUEST_CACHE)"
    return None


def cache_folder() -> Path:
    chosen = os.environ.get("PMUTOP_GUEST_CACHE")
    folder = Path(chosen) if chosen else Path.home() / ".cache" / "pmutop-guest"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def locked(folder: Path):
    """One builder at a time; a second test run waits and then finds everything made."""
    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def prepare() -> tuple[Path, Path]:
    """(kernel, base image), made where they are missing."""
    if reason := reason_to_skip():
        raise Unavailable(reason)
    folder = cache_folder()
    with locked(folder):
        try:
            return kernel(folder), base_image(folder)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or error.stdout or "").strip().splitlines()[-3:]
            raise Unavailable(f"{' '.join(map(str, error.cmd[:4]))} failed: {' | '.join(said)}") from error


def run(*command, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=cwd, env={**os.environ, **(env or {})}, check=True, capture_output=True, text=True
    ).stdout


def apt(folder: Path, *command: str, cwd: Path | None = None) -> str:
    """Run an apt command for arm64 on lists, status and cache of its own: the host's dpkg is left alone."""
    state = folder / "apt"
    conf = state / "conf"
    if not conf.exists():
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (state / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        fresh = state / "conf.new"
        fresh.write_text(
            f'''APT::Architecture "arm64"; APT::Architectures {{ "arm64"; }};
            APT::Install-Recommends "false"; APT::Sandbox::User ""; Acquire::Languages "none";
            Dir::State::lists "{state}/lists"; Dir::State::status "{state}/status"; Dir::Cache "{state}/cache";
            Debug::NoLocking "true";'''
        )
        run("apt-get", "-qq", "update", env={"APT_CONFIG": str(fresh)})
        fresh.rename(conf)
    return run(*command, cwd=cwd, env={"APT_CONFIG": str(conf)})


def kernel(folder: Path) -> Path:
    image = folder / "kernel"
    if not image.exists():
        about = apt(folder, "apt-cache", "show", "--no-all-versions", "linux-image-cloud-arm64")
        depends = next(line for line in about.splitlines() if line.startswith("Depends: "))
        name = depends.removeprefix("Depends: ").split(" ")[0].rstrip(",")
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            apt(folder, "apt-get", "-qq", "download", name, cwd=Path(scratch))
            unpacked = Path(scratch) / "root"
            run("dpkg-deb", "-x", next(Path(scratch).glob("*.deb")), unpacked)
            next((unpacked / "boot").glob("vmlinuz-*")).rename(image)
    return image


def base_image(folder: Path) -> Path:
    """The cpio of everything that is not ours: Debian's Python, its libraries and the wheels, compiled to .pyc."""
    image = folder / "base.cpio"
    if image.exists():
        return image
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    apt(
        folder, "apt-get", "-qq", "-y", "--download-only", "install", PYTHON, "libstdc++6", f"lib{PYTHON}-dev"
    )
    for package in sorted((folder / "apt/cache/archives").glob("*.deb")):
        # Headers stay outside of the image; the development packages bring nothing that a guest runs.
        run("dpkg-deb", "-x", package, folder / "headers" if "-dev_" in package.name else root)
    site = root / "opt" / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", site]
    pip += [
        "--only-binary=:all:",
        "--implementation",
        "cp",
        "--python-version",
        PYTHON.removeprefix("python"),
    ]
    pip += ["--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_28_aarch64"]
    run(*pip, *WHEELS)
    shutil.copytree(site / "numpy/_core/include", folder / "headers/numpy", dirs_exist_ok=True)
    sources = [root / "usr/lib" / PYTHON, site]
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", *sources], stdout=subprocess.DEVNULL, check=False
    )
    part = image.with_suffix(".part")
    part.write_bytes(cpio(tree(root)))
    part.rename(image)
    return image


def tree(root: Path):
    """(name in the guest, file) of a folder, without what the guest never needs."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if any(part in LEFT_OUT for part in path.relative_to(root).parts) or name.startswith(LEFT_OUT):
            continue
        yield name, path


def overlay() -> bytes:
    """The cpio of what is ours: process 1, the loop program, the checks, pmutop and its extension for aarch64."""
    folder = cache_folder()
    with locked(folder):
        built = cross_built(folder)
        staged = folder / "overlay"
        shutil.rmtree(staged, ignore_errors=True)
        for name, source in (("pmutop", REPOSITORY / "pmutop"), ("pmutop/models", REPOSITORY / "models")):
            ignored = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(source, staged / "opt/site" / name, ignore=ignored, dirs_exist_ok=True)
        for extension in (built / "lib").glob("pmutop/*.so"):
            shutil.copy2(extension, staged / "opt/site/pmutop")
        shutil.copytree(
            HERE / "inside", staged / "opt/inside", ignore=shutil.ignore_patterns("*.c", "__pycache__")
        )
        (staged / "opt/bin").mkdir()
        shutil.copy2(built / "init", staged / "init")
        for name in PROGRAMS.keys() - {"init"}:
            shutil.copy2(built / name, staged / "opt/bin")
            shutil.copy2(built / name, staged / "opt/bin")
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", staged], stdout=subprocess.DEVNULL, check=False
        )
        return cpio((path.relative_to(staged).as_posix(), path) for path in sorted(staged.rglob("*")))


def cross_built(folder: Path) -> Path:
    """Build with the repository's own setup.py for aarch64; only what changed is built again."""
    built = folder / "built"
    built.mkdir(exist_ok=True)
    sources = [
        REPOSITORY / "setup.py",
        REPOSITORY / "pyproject.toml",
        REPOSITORY / "README.md",
        REPOSITORY / "LICENSE",
    ]
    sources += sorted([*(REPOSITORY / "ext").glob("*.[pch]*"), *(REPOSITORY / "ext").glob("*/*.pxi")])
    wanted = {path.relative_to(REPOSITORY): path for path in sources if path.is_file()}
    for old in {path for path in (built / "ext").rglob("*") if path.is_file()} - {
        built / name for name in wanted
    }:
        old.unlink()
        (built / "lib/pmutop").mkdir(parents=True, exist_ok=True)
        for extension in (built / "lib/pmutop").glob(f"_{old.stem}.*.so"):
            extension.unlink()
    changed = [copied(path, built / name) for name, path in wanted.items()]
    if any(changed) and any(name.suffix == ".pyx" for name in wanted):
        includes = [
            folder / "headers/usr/include",
            folder / "headers/usr/include" / PYTHON,
            folder / "headers/numpy",
        ]
        settings = (
            folder / "sysconfig"
        )  # alone in its folder: the rest of the guest's library is not for the host
        name = "_sysconfigdata__aarch64-linux-gnu"
        copied(folder / "root/usr/lib" / PYTHON / f"{name}.py", settings / f"{name}.py")
        environment = {
            "_PYTHON_HOST_PLATFORM": "linux-aarch64",
            "_PYTHON_SYSCONFIGDATA_NAME": name,
            "PYTHONPATH": str(settings),
            "CC": CC,
            "LDSHARED": f"{CC} -shared",
            "CFLAGS": " ".join(f"-I{include}" for include in includes),
        }
        try:
            build = ["build_ext", "--build-lib", "lib", "--build-temp", "temp", "-j2"]
            run(sys.executable, "setup.py", "-q", *build, cwd=built, env=environment)
        except subprocess.CalledProcessError as error:
            (built / "setup.py").unlink()  # so that the next run tries again
            raise RuntimeError(f"the extension does not build for aarch64:\n{error.stderr[-4000:]}") from None
    headers = [*WORKLOADS.glob("*.h"), REPOSITORY / "pmutop/pmutop_region.h"]
    changed = [copied(header, built / "carried" / header.name) for header in headers]
    if any(changed):
        for name in PROGRAMS:
            (built / name).unlink(missing_ok=True)
    for name, place in PROGRAMS.items():
        source = built / "carried" / f"{name}.c"
        if copied(place / source.name, source) or not (built / name).exists():
            flags = ["-O2", "-Wall", "-Wextra", "-static", "-pthread", "-s"]
            run(CC, *flags, "-o", built / name, source, "-lm")
    return built


def copied(source: Path, target: Path) -> bool:
    """Copy if the contents differ; True when they did. Times are never compared: worktrees take turns here."""
    data = source.read_bytes()
    if target.exists() and target.read_bytes() == data:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return True


def cpio(entries) -> bytes:
    """An archive in the kernel's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    out = bytearray()

    def entry(name: str, mode: int, data: bytes, mtime: int) -> None:
        padded = name.encode() + b"\0"
        fields = (0, mode, 0, 0, 1, mtime, len(data), 0, 0, 0, 0, len(padded), 0)
        out.extend(b"070701" + b"".join(b"%08X" % value for value in fields) + padded)
        out.extend(bytes(-len(out) % 4))
        out.extend(data)
        out.extend(bytes(-len(out) % 4))

    for name, path in entries:
        about = path.lstat()
        if path.is_symlink():
            data = os.readlink(path).encode()
        else:
            data = path.read_bytes() if path.is_file() else b""
        entry(name, about.st_mode, data, int(about.st_mtime))
    entry("TRAILER!!!", 0, b"", 0)
    out.extend(bytes(-len(out) % 512))
    return bytes(out)
