"""Check the wheel in a folder: it has every file of the package, and works when installed in a fresh environment."""

from __future__ import annotations

import subprocess
import sys
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
COMMANDS = ["--version", "demo", "init", "report karat-demo/bm25.parquet -o report.html"]


def main(folder: Path) -> None:
    """Check the one wheel of the folder."""
    (wheel,) = folder.glob("*.whl")
    missing = package_files() - set(ZipFile(wheel).namelist())
    if missing:
        sys.exit(f"{wheel} lacks {', '.join(sorted(missing))}")
    with TemporaryDirectory() as temporary:
        venv = Path(temporary, "venv")
        uv("venv", "--python", sys.executable, venv)
        uv("pip", "install", "--python", venv, wheel.resolve(), "--constraint", ROOT / "requirements" / "runtime.lock")
        call(temporary, venv / "bin" / "python", "-c", PYTHON)
        for command in COMMANDS:
            print(f"karat {command}", flush=True)
            call(temporary, venv / "bin" / "karat", *command.split())


def package_files() -> set[str]:
    """The files of the package, as a wheel names them."""
    source = ROOT / "src"
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix() for path in files}


def uv(command: str, *arguments: object) -> None:
    """Run uv without its messages."""
    subprocess.run([UV, command, "--quiet", *map(str, arguments)], check=True)


def call(folder: str, *command: object) -> None:
    """Run a command in a folder; show its output only if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


main(Path(sys.argv[1]))
