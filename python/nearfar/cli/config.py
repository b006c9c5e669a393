"""``nearfar config``: flags to build C and C++ programs with."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.records.choices import DevelopmentPackage

Package = Annotated[
    DevelopmentPackage,
    typer.Argument(
        help="libhmalloc (C, C++), persistent structures (C++), or the memory simulator (C, C++)."
    ),
]
Cflags = Annotated[bool, typer.Option("--cflags", help="Print the compiler's flags.")]
Libs = Annotated[bool, typer.Option("--libs", help="Print the linker's flags.")]
CmakeDir = Annotated[
    bool, typer.Option("--cmakedir", help="Print the folder for CMake's nearfar_DIR.")
]
Preload = Annotated[
    bool, typer.Option("--preload", help="Print the library that replaces malloc, for LD_PRELOAD.")
]
PkgConfigDir = Annotated[
    bool, typer.Option("--pkgconfigdir", help="Print the folder for PKG_CONFIG_PATH.")
]


def config(
    package: Package = "hmalloc",
    cflags: Cflags = False,
    libs: Libs = False,
    cmakedir: CmakeDir = False,
    pkgconfigdir: PkgConfigDir = False,
    preload: Preload = False,
) -> None:
    """Print flags to build C and C++ programs with the libraries that nearfar brings.

    Examples:

        cc program.c $(nearfar config --cflags --libs) -o program

        g++ -std=c++20 program.cpp $(nearfar config persist --cflags --libs) -o program

        cc core.c $(nearfar config sim --cflags --libs) -o core

        cmake -S . -B build -Dnearfar_DIR=$(nearfar config --cmakedir)

        LD_PRELOAD=$(nearfar config --preload) NEARFAR_HMALLOC_PLAN=my.plan ./program
    """
    from nearfar.errors import BadInputError
    from nearfar.process import development
    from nearfar.report.console import note

    if not (cflags or libs or cmakedir or pkgconfigdir or preload):
        raise BadInputError(
            "nothing to print was named", "name it, for example: nearfar config --cflags --libs"
        )
    if cflags or libs:
        flags = development.flags_of(package)
        if absent := development.not_installed(flags.required):
            packages = " ".join(file.replace(".so", "-dev") for file in absent)
            note(f"nearfar: {', '.join(absent)} not found; programs with {package} require them")
            note(f"  next: apt-get install {packages}")
        print(" ".join([flags.cflags] * cflags + [flags.libs] * libs))
    if cmakedir:
        print(development.CMAKE_DIR)
    if pkgconfigdir:
        print(development.PKG_CONFIG_DIR)
    if preload:
        from nearfar.place.preload import LIBRARY
        from nearfar.process.helpers import preloadable

        print(preloadable(LIBRARY))
