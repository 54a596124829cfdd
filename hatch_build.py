"""Build hook: compiles the kernel. Without a C compiler the build goes on, and the wheel is pure Python."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.errors import BaseError

PACKAGE = Path("src", "karat", "_kernel")
TAG = "cp311-abi3"
"""The limited API of Python 3.11: one wheel for it and all later versions."""
CHOICE = "KARAT_BUILD_KERNEL"
"""The environment variable that leaves the kernel out if it is 0, and lets the build fail without it if it is 1."""


class KernelHook(BuildHookInterface[Any]):
    """Adds the compiled kernel to the wheel, or puts it next to its source for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernel, and name the platform in the tag of the wheel."""
        if self.target_name != "wheel":
            return
        for old in Path(self.root, PACKAGE).glob("native.*.so"):
            old.unlink()
        if not (built := self._compile()):
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"{TAG}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(str(PACKAGE / built))

    def _compile(self) -> str | None:
        """The file name of the compiled kernel in its package, or None."""
        choice = os.environ.get(CHOICE, "")
        # Python without the GIL has no limited API, and PyPy would run the compiled kernel slower than the twins.
        if choice == "0" or sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
            return None
        extension = Extension("native", [str(Path(self.root, PACKAGE, "native.c"))], py_limited_api=True)
        command = Distribution({"name": "native", "ext_modules": [extension]}).get_command_obj("build_ext")
        with TemporaryDirectory() as folder:
            command.build_lib = str(Path(self.root, PACKAGE))
            command.build_temp = folder
            try:
                command.ensure_finalized()
                command.run()
            except (BaseError, OSError) as error:
                if choice == "1":
                    raise
                self.app.display_warning(f"The kernel is not compiled, so karat uses Python instead: {error}")
                return None
        return command.get_ext_filename("native")
