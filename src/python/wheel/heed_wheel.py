"""Build backend of pyproject.toml (PEP 517): builds the Python module with CMake and packs it as a wheel.

    pip install .
    pip wheel . --config-settings=build-dir=build/release    # from an existing build directory

The wheel has the module, its type stub and the bundled models. It is for the Python that runs this file and for this
machine's system libraries.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TIME = (1980, 1, 1, 0, 0, 0)  # of all files: the same input gives the same wheel


def version():
    return re.search(r"^project\(heed VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]


def metadata():
    summary = re.search(r'^description = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)[1]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return (f"Metadata-Version: 2.1\nName: heed\nVersion: {version()}\nSummary: {summary}\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.9\nProvides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"


def run(*command):
    print("+", *command, flush=True)
    if subprocess.run([str(c) for c in command], check=False).returncode != 0:
        sys.exit(f"error: {command[0]} failed; scripts/packages.txt lists what the build needs")


def build(folder):
    """Builds the module in `folder`, which is configured first unless it already is."""
    if not (folder / "CMakeCache.txt").exists():
        run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DHEED_DEVELOPER_MODE=OFF",
            "-DHEED_MPI=OFF", f"-DPython3_EXECUTABLE={sys.executable}")
    run("cmake", "--build", folder, "--target", "heed_python")


def wheel_files(folder, staging):
    """(name in the wheel, file) of everything but the metadata."""
    run("cmake", "--install", folder, "--component", "python", "--prefix", staging, "--strip")
    module = "__init__" + sysconfig.get_config_var("EXT_SUFFIX")
    found = list(pathlib.Path(staging).rglob(module))
    if not found:
        sys.exit(f"error: {folder} has no {module}: it must be configured for {sys.executable}, with pybind11")
    for file in sorted(found[0].parent.iterdir()):
        yield f"heed/{file.name}", file
    for config in sorted(ROOT.glob("models/*/config.json")):
        for file in sorted(config.parent.iterdir()):
            if file.is_file() and file.name != "log.jsonl":
                yield f"heed/models/{config.parent.name}/{file.name}", file


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def write_metadata(info):
    """The files of NAME.dist-info, by name; RECORD comes last and lists all files."""
    return {f"{info}/METADATA": metadata().encode(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: heed\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode(),
            f"{info}/LICENSE": (ROOT / "LICENSE").read_bytes()}


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = f"heed-{version()}.dist-info"
    for name, content in write_metadata(info).items():
        file = pathlib.Path(metadata_directory, name)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    given = (config_settings or {}).get("build-dir")
    folder = pathlib.Path(given).resolve() if given else ROOT / "build" / f"wheel-{tag()}"
    build(folder)
    info = f"heed-{version()}.dist-info"
    name = f"heed-{version()}-{tag()}.whl"
    with tempfile.TemporaryDirectory() as staging, \
            zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        record = ""

        def add(path, content, mode):
            nonlocal record
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"

        for path, file in wheel_files(folder, staging):
            add(path, file.read_bytes(), 0o100755 if file.suffix == ".so" else 0o100644)
        for path, content in write_metadata(info).items():
            add(path, content, 0o100644)
        entry = zipfile.ZipInfo(f"{info}/RECORD", TIME)
        entry.external_attr = 0o100644 << 16
        wheel.writestr(entry, f"{record}{info}/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    """The files that git tracks."""
    top = f"heed-{version()}"
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True).stdout.split(b"\0")
    with tarfile.open(pathlib.Path(sdist_directory, f"{top}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in map(os.fsdecode, filter(None, files)):
            archive.add(ROOT / name, f"{top}/{name}", recursive=False)
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch, "PKG-INFO")
            file.write_text(metadata(), encoding="utf-8")
            archive.add(file, f"{top}/PKG-INFO")
    return f"{top}.tar.gz"
