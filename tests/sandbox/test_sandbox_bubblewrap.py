"""What a program in the sandbox sees, may do, and leaves behind."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sandbox_cases import PYTHON, on_host, py, sh, unique

from smith.errors import BadInput, Unavailable
from smith.sandbox import Bind, Command, Ended, Limits, Sandbox, make
from smith.sandbox import limits as kernel


def test_the_environment_is_what_was_given_and_nothing_inherited(
    bubblewrap: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "planted-secret")
    ended = sh(bubblewrap, "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'", GIVEN="1", LANG="C")
    variables = dict(line.split("=", 1) for line in ended.stdout.text.splitlines() if "=" in line)
    assert {k: v for k, v in variables.items() if not k.startswith("-")}.keys() <= {
        "GIVEN", "HOME", "TMPDIR", "PATH", "LANG", "PWD", "SHLVL", "_",
    }  # fmt: skip
    assert (variables["GIVEN"], variables["LANG"], variables["HOME"]) == ("1", "C", "/home/smith")
    assert "planted-secret" not in ended.stdout.text + ended.stderr.text


def test_what_runs_before_the_command_obeys_no_variable_of_it(bubblewrap: Sandbox, tmp_path: Path) -> None:
    for name in ("bwrap", "prlimit", "setpriv", "env"):
        (tmp_path / name).write_text("#!/bin/sh\necho hijacked\n")
        (tmp_path / name).chmod(0o755)
    bind = Bind(tmp_path, str(tmp_path))
    ended = sh(bubblewrap, "echo $LD_PRELOAD", bind, PATH=f"{tmp_path}:{kernel.PATH}", LD_PRELOAD="/no/such.so")
    assert ended.stdout.text == "/no/such.so\n"
    assert ended.stderr.text.count("cannot be preloaded") == 1


def test_the_user_is_nobody(bubblewrap: Sandbox) -> None:
    ended = sh(bubblewrap, "id -u; id -un; id -G; grep -E 'Cap|NoNewPrivs' /proc/self/status")
    user, name, groups, *status = ended.stdout.text.splitlines()
    assert int(user) >= 1000 and name == "smith" and groups == user
    fields = dict(line.split() for line in status)
    assert fields.pop("NoNewPrivs:") == "1"
    bounding = fields.pop("CapBnd:")
    assert {int(value, 16) for value in fields.values()} == {0}
    assert int(bounding, 16) == 0 or int(user) == 1000  # in a user namespace the bound is empty of meaning


def test_nothing_of_the_host_is_visible(bubblewrap: Sandbox, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.write_text("x")
    shown = sh(bubblewrap, "ls -A /; echo; ls -A /tmp /home/smith /dev/shm; ls /root /etc/shadow /var /opt /mnt /srv")
    top, _, rest = shown.stdout.text.partition("\n\n")
    usual = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "dev", "sys", "tmp", "home"}
    assert set(top.split()) <= usual
    assert rest.split() == ["/dev/shm:", "/home/smith:", "/tmp:"]
    hidden = [planted, Path(__file__), Path.home(), Path.cwd(), Path("/etc/shadow"), Path("/etc/hostname")]
    ended = sh(bubblewrap, "; ".join(f"test ! -e '{path}' || echo '{path}'" for path in hidden))
    assert ended.ok and ended.stdout.text == ""


def test_only_its_own_processes_are_visible(bubblewrap: Sandbox) -> None:
    ended = sh(bubblewrap, "ls /proc | grep -c '^[0-9]'; hostname; kill -9 1; echo alive")
    count, hostname, alive = ended.stdout.text.split()
    assert int(count) < 8 and hostname == "smith" and alive == "alive"


def test_there_is_no_network_but_an_own_loopback(bubblewrap: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = py(
            bubblewrap,
            f"""
import socket
print([name for _, name in socket.if_nameindex()])
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), 2).close()
for address in (("127.0.0.1", {server.getsockname()[1]}), ("1.1.1.1", 53)):
    try:
        socket.create_connection(address, 2)
        print("reached", address)
    except OSError:
        pass
""",
        )
    assert ended.stdout.text == "['lo']\n", ended


def test_abstract_sockets_of_the_host_are_out_of_reach(bubblewrap: Sandbox) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0smith-{unique()}"
        server.bind(name)
        server.listen()
        ended = py(bubblewrap, f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})")
    assert ended.status == 1 and "ConnectionRefusedError" in ended.stderr.text


def test_read_only_and_writable_binds(bubblewrap: Sandbox, tmp_path: Path) -> None:
    for name in ("given", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text("old")
    os.symlink("/etc/passwd", tmp_path / "mine" / "link")
    ended = sh(
        bubblewrap,
        "cat /data/given/old; touch /data/given/new; echo x > /data/given/old; rm /data/given/old; "
        "mkdir d; echo new > d/new; echo changed > old; chmod 000 d; touch /usr/x /x /data/x /dev/x /etc/x /proc/sys/x",
        Bind(tmp_path / "given", "/data/given"),
        Bind(tmp_path / "mine", "/data/mine", writable=True),
        cwd="/data/mine",
    )
    assert ended.stdout.text == "old"
    assert ended.stderr.text.count("Read-only file system") >= 7, ended.stderr.text
    assert [p.name for p in (tmp_path / "given").iterdir()] == ["old"]
    assert (tmp_path / "mine" / "old").read_text() == "changed\n"
    for path in (tmp_path / "mine", *(tmp_path / "mine").iterdir()):
        assert path.lstat().st_uid == os.geteuid(), path
    assert Path("/etc/passwd").stat().st_uid == 0
    (tmp_path / "mine" / "d").chmod(0o700)
    (tmp_path / "mine" / "d" / "new").unlink()


def test_binds_may_lie_in_each_other_and_below_scratch(bubblewrap: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    ended = sh(
        bubblewrap,
        "touch /tmp/outer/inner/x /tmp/x /home/smith/deep/down/x; touch /tmp/outer/x 2>/dev/null || echo refused",
        Bind(tmp_path / "scratch", "/home/smith/deep/down", writable=True),
        Bind(tmp_path / "outer" / "inner", "/tmp/outer/inner", writable=True),
        Bind(tmp_path / "outer", "/tmp/outer"),
    )
    assert ended.ok and ended.stdout.text == "refused\n", ended
    assert (tmp_path / "outer" / "inner" / "x").exists() and (tmp_path / "scratch" / "x").exists()


def test_scratch_is_fresh_each_time_and_bounded(bubblewrap: Sandbox) -> None:
    for _ in range(2):
        assert sh(bubblewrap, "ls -A /tmp $HOME /dev/shm | grep x; touch /tmp/x $HOME/x /dev/shm/x").stdout.text == ""
    limits = Limits(wall_s=20, memory_bytes=64 << 20)
    script = "head -c 32M /dev/zero > /tmp/x; stat -c %s /tmp/x"
    ended = bubblewrap.run(Command(["sh", "-c", script], cwd="/", limits=limits))
    assert int(ended.stdout.text) <= 16 << 20 and "No space left" in ended.stderr.text


def test_standard_input_and_given_descriptors_get_through_and_no_others(bubblewrap: Sandbox) -> None:
    read, write = os.pipe()
    secret = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        script = f"cat; echo told >&{write}; ls /proc/self/fd | wc -l"
        ended = bubblewrap.run(
            Command(["bash", "-c", script], cwd="/", limits=Limits(20), pass_fds=[write], input=b"asked\n")
        )
        os.close(write)
        assert os.read(read, 100) == b"told\n" and os.read(read, 100) == b""
        # Three standard streams, the given one, and the folder that ls reads.
        assert ended.stdout.text.split() == ["asked", "5"]
    finally:
        os.close(read)
        os.close(secret)


def gone(word: str) -> bool:
    """Whether no process of the host carries ``word`` any more, after a moment."""
    return _soon(lambda: not on_host(word), 3)


def test_over_the_wall_limit_everything_is_killed(bubblewrap: Sandbox) -> None:
    number = unique()
    began = time.monotonic()
    ended = sh(bubblewrap, f"trap '' TERM INT HUP; setsid sleep {number} & sleep {number}", wall_s=1)
    assert ended.timed_out and not ended.ok and ended.ending.startswith("timed out")
    assert time.monotonic() - began < 8 and gone(number)


def test_background_processes_end_with_the_command(bubblewrap: Sandbox) -> None:
    number = unique()
    ended = sh(bubblewrap, f"setsid nohup sleep {number} >/dev/null 2>&1 & sleep 0.1; exit 7")
    assert ended.status == 7 and gone(number)


def test_everything_ends_with_a_smith_that_is_killed(bubblewrap: Sandbox, as_root: bool) -> None:
    number = unique()
    script = f"""
from smith.sandbox import Command, Limits
from smith.sandbox.bubblewrap import Bubblewrap
Bubblewrap(may_mount=lambda: {as_root}).run(Command(["sleep", "{number}"], "/", Limits(wall_s=60)))
"""
    with subprocess.Popen([PYTHON, "-c", script]) as process:
        assert _soon(lambda: on_host(f"sleep {number}"))
        process.kill()
    assert gone(number)


def _soon(question: Callable[[], bool], within_s: float = 10) -> bool:
    deadline = time.monotonic() + within_s
    while not (answer := question()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


def test_the_memory_of_one_process_is_bounded(bubblewrap: Sandbox) -> None:
    ended = py(bubblewrap, "bytearray(600 << 20)", limits=Limits(wall_s=20, memory_bytes=300 << 20))
    assert ended.status == 1 and "MemoryError" in ended.stderr.text


def test_the_memory_of_a_tree_of_processes_is_bounded(bubblewrap: Sandbox) -> None:
    script = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(120 << 20)
        break
time.sleep(20)
"""
    ended = py(bubblewrap, script, limits=Limits(wall_s=20, memory_bytes=256 << 20))
    assert ended.breach == "memory" and ended.ending == "over the limit of memory" and not ended.ok


def test_memory_shared_by_forked_processes_counts_once(bubblewrap: Sandbox) -> None:
    script = """
import os, time
held = bytearray(os.urandom(1 << 20) * 120)
children = [os.fork() for _ in range(2)]
time.sleep(0.6)
"""
    assert py(bubblewrap, script, limits=Limits(wall_s=20, memory_bytes=256 << 20)).ok


def test_a_fork_bomb_is_bounded(bubblewrap: Sandbox, as_root: bool) -> None:
    if os.geteuid() == 0 and not as_root:
        pytest.skip("the kernel does not count the processes of a root in a user namespace")
    script = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    began = time.monotonic()
    ended = py(bubblewrap, script, limits=Limits(wall_s=5, processes=40))
    assert ended.breach == "processes" or ended.timed_out, ended
    assert time.monotonic() - began < 30


def test_files_are_bounded_and_leave_no_core(bubblewrap: Sandbox, tmp_path: Path) -> None:
    script = "head -c 3M /dev/zero > big; stat -c %s big; sh -c 'kill -SEGV $$'; ls; ulimit -n"
    limits = Limits(wall_s=20, file_bytes=1 << 20, open_files=99)
    binds = [Bind(tmp_path, "/work", writable=True)]
    ended = bubblewrap.run(Command(["sh", "-c", script], cwd="/work", binds=binds, limits=limits))
    assert ended.stdout.text.split() == [str(1 << 20), "big", "99"]


def test_a_flood_of_output_is_counted_and_cut_and_can_be_spilled(bubblewrap: Sandbox, tmp_path: Path) -> None:
    limits = Limits(wall_s=60)
    flood = ["head", "-c", "50M", "/dev/zero"]
    ended = bubblewrap.run(Command(flood, cwd="/", limits=limits, spill=tmp_path / "log"))
    assert ended.ok and ended.stdout.total == 50 << 20 and len(ended.stdout.data) < 1 << 20
    assert (tmp_path / "log.stdout").stat().st_size == 50 << 20


def test_spilled_output_is_bounded(bubblewrap: Sandbox, tmp_path: Path) -> None:
    limits = Limits(wall_s=30, file_bytes=20 << 20)
    ended = bubblewrap.run(Command(["cat", "/dev/zero"], cwd="/", limits=limits, spill=tmp_path / "log"))
    assert ended.breach == "output" and ended.seconds < 20


def test_one_sandbox_runs_several_commands_at_a_time(bubblewrap: Sandbox) -> None:
    found: list[Ended] = []

    def one(number: int) -> None:
        found.append(sh(bubblewrap, f"echo {number} > /tmp/x; sleep 0.3; cat /tmp/x; ls /proc | grep -c '^[0-9]'"))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(e.stdout.text.split()[0] for e in found) == ["0", "1", "2", "3"]
    assert all(int(e.stdout.text.split()[1]) < 8 for e in found)


def test_a_sandbox_that_cannot_be_made_is_not_the_commands_failure(bubblewrap: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no-such-folder"):
        sh(bubblewrap, "true", Bind(tmp_path / "no-such-folder", "/data"))
    with pytest.raises(Unavailable, match="bubblewrap"):
        sh(bubblewrap, "true", Bind(tmp_path, "/usr/bin/env/below-a-file"))
    # The command's own words cannot look like that fault.
    ended = sh(bubblewrap, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    assert ended.status == 1


def test_a_command_that_does_not_exist_fails_like_a_command(bubblewrap: Sandbox) -> None:
    ended = bubblewrap.run(Command(["no-such-command"], cwd="/", limits=Limits(20)))
    assert not ended.ok and "no-such-command" in ended.stderr.text


def test_the_device_folder_is_minimal(bubblewrap: Sandbox) -> None:
    ended = sh(bubblewrap, "find /dev -type b; ls /dev; head -c 3 /dev/zero | wc -c; echo x > /dev/null && echo fine")
    listed = ended.stdout.text.split()
    assert listed[-2:] == ["3", "fine"] and not {"mem", "kmsg", "kvm", "fuse", "sda", "vda"} & set(listed)


def test_where_bubblewrap_is_missing_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PATH", "/nowhere")
    with pytest.raises(Unavailable, match=r"bwrap is not installed.*--sandbox host"):
        make("bubblewrap")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(BadInput, match="bubblewrap, host"):
        make("chroot")
