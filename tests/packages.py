"""
Install the wheel and the sdist of dist/ into clean environments, and run tests/smoke.py in each: `make dist` does.

Every interpreter named on the command line (by default Python 3.11 to 3.15, those that are there) gets an environment
for the wheel and one for the sdist, first with the core's dependencies alone, then with all extras.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")


def interpreters() -> list[str]:
    """Return an interpreter of each version that is installed, on the path or by pyenv; print which are not."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [
        [f"python{version}", *(str(each / "bin" / "python") for each in sorted(pyenv.glob(f"{version}.*")))]
        for version in VERSIONS
    ]
    found = [next(filter(works, names), None) for names in candidates]
    absent = [version for version, each in zip(VERSIONS, found, strict=True) if each is None]
    if absent:
        print(f"not installed, and so not tried: Python {', '.join(absent)}", flush=True)
    return [each for each in found if each is not None]


def works(interpreter: str) -> bool:
    """Return whether an interpreter can be run; a shim of pyenv may be there without it."""
    found = shutil.which(interpreter)
    return found is not None and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0


def smoke(interpreter: str, package: Path) -> None:
    """Install a package into a new environment and try it, first as it is, then with all extras."""
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        for kind, extras in (("core", ""), ("all", "[all]")):
            print(f"{interpreter}: {package.name}{extras}", flush=True)
            for words in (
                ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{package}{extras}"],
                ["-m", "pip", "check"],
                [str(ROOT / "tests" / "smoke.py"), kind],
            ):
                subprocess.run([f"{folder}/bin/python", *words], check=True, cwd=folder)


def main(chosen: list[str]) -> None:
    """Try both packages with every interpreter."""
    packages = [*(ROOT / "dist").glob("*.whl"), *(ROOT / "dist").glob("*.tar.gz")]
    if len(packages) != 2:
        sys.exit(f"dist/ must hold one wheel and one sdist, got {[package.name for package in packages]}")
    for interpreter in chosen:
        for package in packages:
            smoke(interpreter, package)


if __name__ == "__main__":
    main(sys.argv[1:] or interpreters())
