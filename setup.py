"""Builds every ext/NAME.pyx as the flat module pmutop._NAME (pyproject's own table for this is still experimental), and
ext/simulator as pmutop/_simulator*.so: not a module, but a plugin that QEMU loads."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

simulator = Extension(
    "pmutop._simulator",
    ["ext/simulator/plugin.c"],
    depends=[str(header) for header in sorted(Path("ext/simulator").glob("*.h"))],
    extra_compile_args=["-O2", "-std=gnu11", "-fvisibility=hidden", "-pthread"],
    optional=True,
)

setup(
    ext_modules=[simulator]
    + cythonize(
        [
            Extension(
                f"pmutop._{source.stem}",
                [str(source)],
                include_dirs=["ext"],
                depends=[str(header) for header in sorted([*Path("ext").glob("*.h"), *Path("ext").glob("*/*.pxi")])],
                extra_compile_args=["-O2", "-pthread"],
                extra_link_args=["-pthread"],
            )
            for source in sorted(Path("ext").glob("*.pyx"))
        ],
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
        },
    )
)
