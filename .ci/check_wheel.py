"""Check the wheel and the sdist in a folder: all files are there, and each works when installed in a fresh environment.

The wheel has the compiled kernel, which uses nothing but the stable ABI. Where there is no compiler, the sdist becomes
a wheel of pure Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
PYTHON = """
import karat
run = karat.evaluate(retrieved=[["a", "b"]], gold=[["b"]], metrics="rr")
assert run.mean["rr"] == 0.5, run.mean
assert "site-packages" in karat.__file__, karat.__file__
"""
COMMANDS = ["demo", "init", "report karat-demo/bm25.parquet -o report.html"]
COMPILED = (".so", ".pyd")
AUDIT = "abi3audit==0.0.26"


def main(folder: Path) -> None:
    """Check the one wheel and the one sdist of the folder."""
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    check_files(wheel, sdist)
    with TemporaryDirectory() as temporary:
        python = install(wheel, Path(temporary, "compiled"))
        call(temporary, python, "-c", PYTHON)
        expect(call(temporary, python, "-m", "karat", "--version"), "native kernel")
        for command in COMMANDS:
            print(f"karat {command}", flush=True)
            call(temporary, python.with_name("karat"), *command.split())
        print("the stable ABI", flush=True)
        uv("tool", "run", "--python", sys.executable, "--from", AUDIT, "abi3audit", "--strict", wheel)
        print("the sdist, without a compiler", flush=True)
        pure = build_without_compiler(sdist, Path(temporary, "pure"))
        python = install(pure, Path(temporary, "python"))
        call(temporary, python, "-c", PYTHON)
        expect(call(temporary, python, "-m", "karat", "--version"), "Python kernel")


def check_files(wheel: Path, sdist: Path) -> None:
    """The wheel has every file of the package and the kernel; the sdist has what the kernel is built of."""
    inside = set(ZipFile(wheel).namelist())
    kernels = [name for name in inside if name.endswith(COMPILED)]
    if len(kernels) != 1 or not kernels[0].startswith("karat/_kernel/native") or "-cp311-abi3-" not in wheel.name:
        sys.exit(f"{wheel} should have one kernel, and a tag for Python 3.11 and later; it has {kernels}")
    with tarfile.open(sdist) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    missing = (package_files() - inside) | ({"hatch_build.py", "src/karat/_kernel/native.c"} - source)
    if missing:
        sys.exit(f"{wheel} or {sdist} lacks {', '.join(sorted(missing))}")
    if compiled := [name for name in source if name.endswith(COMPILED)]:
        sys.exit(f"{sdist} has compiled files: {', '.join(compiled)}")


def package_files() -> set[str]:
    """The source files of the package, as a wheel names them; the kernel of an editable installation is none."""
    source = ROOT / "src"
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix() for path in files if path.suffix not in COMPILED}


def install(wheel: Path, venv: Path) -> Path:
    """The Python of a fresh environment that has the wheel."""
    uv("venv", "--python", sys.executable, venv)
    uv("pip", "install", "--python", venv, wheel.resolve(), "--constraint", ROOT / "requirements" / "runtime.lock")
    return venv / "bin" / "python"


def build_without_compiler(sdist: Path, folder: Path) -> Path:
    """The wheel that is built of the sdist where no compiler is found."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KARAT_")}
    options = ["--wheel", "--python", sys.executable, "--out-dir", folder]
    uv("build", *options, sdist.resolve(), environment=environment | {"CC": "/no/such/compiler"})
    (wheel,) = folder.glob("*.whl")
    if not wheel.name.endswith("-py3-none-any.whl"):
        sys.exit(f"without a compiler, the build made {wheel.name}")
    return wheel


def uv(command: str, *arguments: object, environment: dict[str, str] | None = None) -> None:
    """Run uv without its messages."""
    subprocess.run([UV, command, "--quiet", *map(str, arguments)], check=True, env=environment)


def call(folder: str, *command: object) -> str:
    """Run a command in a folder; show its output only if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(output: str, words: str) -> None:
    """Refuse an output without these words."""
    print(output.strip(), flush=True)
    if words not in output:
        sys.exit(f"expected {words!r}")


main(Path(sys.argv[1]))
