"""Files of compiled code: damaged or another's, they are a compilation and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from equipoise.compiled import cache, files, jit
from equipoise.compiled.files import cache_directory
from equipoise.ledger import steps

POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no owners and modes of this kind")
ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to others")
OTHER = 65534

# A small study to the end: its allocation, and its means to the last bit.
STUDY = """
import equipoise as eq
study = eq.Study(2, budget=40)
while not study.done:
    ticket = study.ask()
    study.tell(ticket, (3.0 if ticket.arm else 1.0) * (-1) ** (study.remaining // 2) + study.remaining / 7)
result = study.result()
print(result)
print([result.counts[arm] for arm in range(2)], [float(result.means[arm]).hex() for arm in range(2)])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that nobody has used."""
    path = tmp_path / "cache"
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(path))
    monkeypatch.setattr(files, "_refused", False)
    return path


def test_what_is_filed_is_read(folder: Path) -> None:
    files.write("a.nbc", "key", b"code")
    assert files.read("a.nbc", "key") == b"code"
    assert files.exists("a.nbc")
    assert files.anything_kept()
    assert os.listdir(folder) == ["a.nbc"]
    files.write("a.nbc", "key", b"other code")
    assert files.read("a.nbc", "key") == b"other code"


@POSIX
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folder_and_files_are_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int) -> None:
    folder = tmp_path / "made" / "too" / "cache"
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(folder))
    before = os.umask(mask)
    try:
        files.write("a.nbc", "key", b"code")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (folder.parent.parent, folder.parent, folder, folder / "a.nbc")]
    assert modes == [0o700, 0o700, 0o700, 0o600]


@pytest.mark.parametrize("content", [b"", b"code" * 1000])
def test_any_damage_is_found(folder: Path, content: bytes) -> None:
    files.write("a.nbc", "key", content)
    path = folder / "a.nbc"
    whole = path.read_bytes()
    chance = random.Random(1)
    for place in {chance.randrange(8 * len(whole)) for _ in range(50)}:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert files.read("a.nbc", "key") is None
    for length in {chance.randrange(len(whole)) for _ in range(10)} | {0}:
        path.write_bytes(whole[:length])
        assert files.read("a.nbc", "key") is None
    path.write_bytes(whole + b"\0")
    assert files.read("a.nbc", "key") is None
    path.write_bytes(whole)
    assert files.read("a.nbc", "key") == content


def test_a_whole_file_under_another_name_is_not_read(folder: Path) -> None:
    files.write("a.nbc", "the key of a", b"code of a")
    files.write("b.nbc", "the key of b", b"code of b")
    (folder / "a.nbc").replace(folder / "b.nbc")
    assert files.read("b.nbc", "the key of b") is None
    with pytest.raises(FileNotFoundError):
        files.read("a.nbc", "the key of a")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_is_not_written_to_its_end_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def replace(*_: object) -> None:
        raise error

    files.write("a.nbc", "key", b"code")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(error):
            files.write("a.nbc", "key", b"other code")
    assert os.listdir(folder) == ["a.nbc"]
    assert files.read("a.nbc", "key") == b"code"


def test_another_process_makes_the_folder_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a look for it and making it."""
    exists = os.path.lexists

    def late(path: Path) -> bool:
        if path == folder and not exists(path):
            folder.mkdir(0o700)
            return False
        return exists(path)

    monkeypatch.setattr(os.path, "lexists", late)
    files.write("a.nbc", "key", b"code")
    assert files.read("a.nbc", "key") == b"code"


@POSIX
def test_only_a_plain_file_of_the_user_is_read(folder: Path, tmp_path: Path) -> None:
    files.write("a.nbc", "key", b"code")
    path, elsewhere = folder / "a.nbc", tmp_path / "elsewhere"
    for mode in (0o620, 0o602, 0o666):
        path.chmod(mode)
        assert files.read("a.nbc", "key") is None
    path.chmod(0o644)
    assert files.read("a.nbc", "key") == b"code"
    path.replace(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"a\.nbc"):
        files.read("a.nbc", "key")
    path.unlink()
    os.mkfifo(path)
    assert files.read("a.nbc", "key") is None  # and nobody waits for a writer
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        files.read("a.nbc", "key")


@ROOT
def test_a_file_of_another_user_is_not_read_but_replaced(folder: Path) -> None:
    files.write("a.nbc", "key", b"code")
    os.chown(folder / "a.nbc", OTHER, OTHER)
    assert files.read("a.nbc", "key") is None
    files.write("a.nbc", "key", b"code")
    assert files.read("a.nbc", "key") == b"code"
    assert (folder / "a.nbc").stat().st_uid == os.geteuid()


def refused(capfd: pytest.CaptureFixture[str], folder: Path) -> str:
    """Why a folder is not used, which is said once; nothing is written to it."""
    for _ in range(2):
        files.write("b.nbc", "key", b"code")
        assert files.read("b.nbc", "key") is None
        assert not files.exists("b.nbc")
        assert not files.anything_kept()
        assert not files.can_keep()
    assert not (folder / "b.nbc").exists()
    told = capfd.readouterr().err
    ending = ", so compiled code is not kept; set EQUIPOISE_CACHE_DIR to a folder of your own\n"
    assert told.startswith("equipoise: ")
    assert told.endswith(ending)
    return told.removeprefix("equipoise: ").removesuffix(ending)


@ROOT
def test_the_folder_of_another_user_is_not_used(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files.write("a.nbc", "key", b"code")
    os.chown(folder, OTHER, OTHER)
    assert refused(capfd, folder) == f"{folder} belongs to another user"


@ROOT
def test_root_makes_no_folder_in_that_of_another_user(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As under sudo with the home of the caller, who could not use it any more."""
    os.chown(folder.parent, OTHER, OTHER)
    assert refused(capfd, folder) == f"{folder.parent} belongs to another user"
    assert not folder.exists()


@POSIX
def test_a_link_is_not_used(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert refused(capfd, folder) == f"{folder} is not a folder"
    assert not os.listdir(tmp_path / "elsewhere")


@POSIX
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777, 0o2775])
def test_a_folder_with_nothing_else_in_it_is_closed_to_others(folder: Path, mode: int) -> None:
    files.write("a.nbc", "key", b"code")
    folder.chmod(mode)
    assert files.read("a.nbc", "key") == b"code"
    assert folder.stat().st_mode & 0o7777 == 0o700


@POSIX
def test_a_folder_with_other_things_in_it_keeps_its_modes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files.write("a.nbc", "key", b"code")
    (folder / "notes.txt").touch()
    folder.chmod(0o755)
    assert files.read("a.nbc", "key") == b"code"
    assert folder.stat().st_mode & 0o7777 == 0o755
    (folder / "a.nbc").unlink()
    folder.chmod(0o777)
    assert refused(capfd, folder) == f"{folder} can be written by others"
    assert folder.stat().st_mode & 0o7777 == 0o777


@POSIX
def test_a_folder_for_everybody_stays_one(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As /tmp, with nothing in it."""
    folder.mkdir()
    folder.chmod(0o1777)
    assert refused(capfd, folder) == f"{folder} can be written by others"
    assert folder.stat().st_mode & 0o7777 == 0o1777


class Planted:
    """What runs where somebody unpickles it: it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, int]]:
        return os.mkdir, (str(self.path), 0o700)


def test_a_planted_pickle_is_not_loaded(folder: Path, tmp_path: Path) -> None:
    """As the whole file, behind its own digest, and behind one that was filed by another key."""
    trace = tmp_path / "trace"
    compiled: Any = jit(lambda x: x + 1.0)
    assert compiled(1.0) == 2.0
    [path] = folder.iterdir()
    planted = pickle.dumps(Planted(trace))
    pickle.loads(planted)
    trace.rmdir()  # it works
    files.write("other.nbc", "another key", planted)
    for content in (
        planted,
        hashlib.blake2b(planted, digest_size=32).digest() + planted,
        (folder / "other.nbc").read_bytes(),
    ):
        path.write_bytes(content)
        again: Any = jit(lambda x: x + 1.0)
        assert again(1.0) == 2.0
        assert sum(again.stats.cache_hits.values()) == 0
    assert not trace.exists()
    last: Any = jit(lambda x: x + 1.0)  # what was planted is replaced
    assert last(1.0) == 2.0
    assert sum(last.stats.cache_hits.values()) == 1


class Kept(NamedTuple):
    """What a study prints, and the files of compiled code that it reads: their keys and contents, by name."""

    printed: list[str]
    files: dict[str, tuple[str, bytes]]


@pytest.fixture(scope="module")
def whole() -> Kept:
    """A study with the cache of all tests."""
    printed = study()  # it compiles what it does not find
    code = "import json, equipoise.compiled.files as files\nread, found = files.read, {}\n"
    code += "files.read = lambda name, key: (found.update({name: key}), read(name, key))[1]\n"
    *again, keys = study(code + STUDY + "print(json.dumps(found))")
    assert again == printed
    return Kept(
        printed, {name: (key, (cache_directory() / name).read_bytes()) for name, key in json.loads(keys).items()}
    )


def study(code: str = STUDY, cache: Path | None = None) -> list[str]:
    """The lines that a study prints in a process of its own."""
    environment = os.environ | ({"EQUIPOISE_CACHE_DIR": str(cache)} if cache else {})
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def flipped(content: bytes, place: int) -> bytes:
    """The same with another bit."""
    damaged = bytearray(content)
    damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged)


def test_a_bit_of_what_a_study_reads(whole: Kept, folder: Path) -> None:
    """Bits of every file, from one random place on at equal distances; and files under the names of others."""
    chance = random.Random(26)
    folder.mkdir(0o700)
    assert len(whole.files) > 10
    for name, (key, content) in whole.files.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
        assert files.read(name, key) == content[32:]
        step = len(content) * 8 // 8
        for place in range(chance.randrange(step), len(content) * 8, step):
            (folder / name).write_bytes(flipped(content, place))
            assert files.read(name, key) is None
        (folder / name).write_bytes(next(another for _, another in whole.files.values() if another != content))
        assert files.read(name, key) is None


def test_a_damaged_step_never_gets_to_the_compiler(whole: Kept, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, signature = steps.FIRST[0]
    name, key = step._cache.filed(signature, step.targetctx.codegen())
    assert whole.files[name][0] == key
    content = whole.files[name][1]
    seen: list[Any] = []
    monkeypatch.setattr(cache.Cache, "_rebuild", lambda self, context, payload: seen.append(payload))
    folder.mkdir(0o700)
    for place in [0, 8 * 32, 8 * len(content) // 2, 8 * len(content) - 1]:
        (folder / name).write_bytes(flipped(content, place))
        assert step._cache.load_overload(signature, step.targetctx) is None
    assert not seen
    (folder / name).write_bytes(content)
    step._cache.load_overload(signature, step.targetctx)
    assert len(seen) == 1


def damaged_cache(whole: Kept, folder: Path, damage: dict[str, bytes]) -> list[str]:
    """What a study prints with a cache in which some files are damaged; those are whole files afterwards."""
    folder.mkdir(0o700, exist_ok=True)
    for name, (_, content) in whole.files.items():
        (folder / name).write_bytes(damage.get(name, content))
        (folder / name).chmod(0o600)
    lines = study(cache=folder)
    for name in damage:
        assert files.read(name, whole.files[name][0]) is not None
    return lines


def test_a_study_with_a_damaged_cache(whole: Kept, folder: Path) -> None:
    """One file has another bit, and two have changed places."""
    a, b, c = sorted(whole.files, key=lambda name: len(whole.files[name][1]))[:3]
    content = {name: whole for name, (_, whole) in whole.files.items()}
    damage = {a: flipped(content[a], 8 * 1000), b: content[c], c: content[b]}
    assert damaged_cache(whole, folder, damage) == whole.printed


@pytest.mark.slow
def test_studies_with_a_bit_of_the_cache_flipped(whole: Kept, folder: Path) -> None:
    """Bits chosen at random among all that a study reads; without a digest, one in five is a crash."""
    chance = random.Random(26)
    sizes = {name: len(content) for name, (_, content) in whole.files.items()}
    for _ in range(15):
        [name] = chance.choices(list(sizes), list(sizes.values()))
        damaged = flipped(whole.files[name][1], chance.randrange(8 * sizes[name]))
        assert damaged_cache(whole, folder, {name: damaged}) == whole.printed
