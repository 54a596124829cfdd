"""Build hook: compiles the kernel. Without a C compiler the build goes on, and the wheel is pure Python."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.errors import BaseError, CompileError, LinkError

PACKAGE = Path("karat", "_kernel")
TAG = "cp311-abi3"
"""The limited API of Python 3.11: one wheel for it and all later versions."""
CHOICE = "KARAT_BUILD_KERNEL"
"""The environment variable that leaves the kernel out if it is 0, and lets the build fail without it if it is 1."""


class KernelHook(BuildHookInterface[Any]):
    """Adds the compiled kernel to the wheel, or puts it next to its source for an editable installation."""

    _folder: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernel, and name the platform in the tag of the wheel."""
        if self.target_name != "wheel":
            return
        source = Path(self.root, "src", PACKAGE)
        if version == "editable":
            for old in (*source.glob("native*.so"), *source.glob("native*.pyd")):
                old.unlink()
        self._folder = TemporaryDirectory()
        if not (built := self._compile(source / "native.c", Path(self._folder.name))):
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"{TAG}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if version == "editable":
            shutil.copy(built, source)
        else:
            build_data["force_include"][str(built)] = (PACKAGE / built.name).as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the compiler wrote."""
        if self._folder is not None:
            self._folder.cleanup()

    def _compile(self, source: Path, folder: Path) -> Path | None:
        """The compiled kernel, in a folder, or None."""
        choice = os.environ.get(CHOICE, "")
        # Python without the GIL has no limited API, and PyPy would run the compiled kernel slower than the twins.
        if choice == "0" or sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
            return None
        extension = Extension("native", [str(source)], py_limited_api=True)
        command = Distribution({"name": "native", "ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib = command.build_temp = str(folder)
        try:
            command.ensure_finalized()
            command.run()
        except (BaseError, CompileError, LinkError, OSError) as error:
            if choice == "1":
                raise
            self.app.display_warning(f"The kernel is not compiled, so karat uses Python instead: {error}")
            return None
        return folder / command.get_ext_filename("native")
