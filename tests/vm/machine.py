"""A real Linux kernel in an emulator: two memory nodes, one without processors, and an NVDIMM.

    with Machine(folder) as machine:
        done = machine.run("./nearfar topo --json -")

Its file system is this machine's own, read-only under a layer of memory, so what is installed here
can be run there. It runs under KVM where that works, else its processors are emulated in software,
and times in it mean nothing; under both, its nodes are equally fast.
The NVDIMM is a file of the host's and outlives the machine; ``cut`` ends the machine at once, and
whatever the guest had stored by then, flushed or not, is in that file.

Not thread safe: one command at a time. ``start`` puts one into the background of the guest.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from vm import initramfs
from vm.accelerator import processor_options

ROOT = Path(__file__).parent.parent.parent
#: Programs that it needs here, and the Debian package of each.
NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "depmod": "kmod",
    "ndctl": "ndctl",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
}
MIB = 1 << 20
#: 1 GiB that can be used, in units of 16 MiB as the kernel wants it, and the label area.
NVDIMM_BYTES = 1026 * MIB
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing_packages() -> list[str]:
    """Debian packages that have to be installed before a machine can be started."""
    return [package for program, package in NEEDED.items() if not shutil.which(program, path=_PATH)]


class MachineError(Exception):
    """The machine did not come up, or ended while a command ran; holds the end of its console."""


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    code: int
    stdout: str
    stderr: str

    def ok(self) -> str:
        """Its output. Raises AssertionError where it failed."""
        assert self.code == 0, f"exit {self.code}\n{self.stdout}\n{self.stderr}"
        return self.stdout


@dataclass
class Machine:
    """One virtual machine, started on entry and gone on exit.

    ``folder`` holds what belongs to it: ``nvdimm`` (made where absent), ``share``, which the guest
    has as /mnt/share (what it has written there is here before its write returns), ``console``.
    ``kernel_suite``: of Debian, if its own kernel is too old; ``hmat``: what the firmware says of
    the nodes' speed, as arguments of QEMU's ``-numa``.
    """

    folder: Path
    kernel_options: str = ""
    kernel_suite: str = ""
    hmat: tuple[str, ...] = ()
    boot_limit_s: float = 240.0
    boot_s: float = field(default=0.0, init=False)

    def __enter__(self) -> Self:
        begin = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.share.mkdir(exist_ok=True)
        if not self.nvdimm.exists():
            with self.nvdimm.open("wb") as file:
                file.truncate(NVDIMM_BYTES)
        kernel = initramfs.fetch_kernel(self.kernel_suite)
        archive = initramfs.build(kernel, self.folder)
        self._console = (self.folder / "console").open("wb")
        self._process = subprocess.Popen(
            self._command(kernel, archive),
            stdin=subprocess.DEVNULL,
            stdout=self._console,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
        )
        self._port = socket.socket(socket.AF_UNIX)
        self._unread = b""
        try:
            self._connect(begin + self.boot_limit_s)
            self._line(begin + self.boot_limit_s, "did not come up")
        except BaseException:
            self.cut()
            raise
        self.boot_s = time.monotonic() - begin
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()

    @property
    def nvdimm(self) -> Path:
        """The file behind the NVDIMM."""
        return self.folder / "nvdimm"

    @property
    def share(self) -> Path:
        """The folder that the guest has as /mnt/share."""
        return self.folder / "share"

    def run(self, command: str, timeout_s: float = 300.0) -> Done:
        """Run a shell command in the checkout's folder. Raises MachineError if it never ends."""
        self._port.sendall(base64.b64encode(command.encode()) + b"\n")
        line = self._line(time.monotonic() + timeout_s, f"did not end: {command}")
        code, out, err = line.split(" ")
        return Done(int(code), *(base64.b64decode(part[1:]).decode() for part in (out, err)))

    def start(self, command: str) -> None:
        """Put a shell command into the background; its output goes to /mnt/share/background."""
        self.run(f"({command}) >/mnt/share/background 2>&1 & disown").ok()

    def cut(self) -> None:
        """End the machine between two instructions, as a power cut does."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._port.close()
        self._console.close()

    def _command(self, kernel: Path, archive: Path) -> list[str]:
        version = (kernel / "ready").read_text().strip()
        image = kernel / "boot" / f"vmlinuz-{version}"
        options = f"console=ttyS0 quiet panic=-1 nearfar.folder={ROOT} {self.kernel_options}"
        hmat = ",hmat=on" if self.hmat else ""
        plan9 = "security_model=none,multidevs=remap"
        return [
            "qemu-system-x86_64", *processor_options(image), "-machine", f"q35,nvdimm=on{hmat}",
            "-smp", "2", "-m", "2G,slots=4,maxmem=8G",
            "-object", "memory-backend-ram,id=m0,size=1G",
            "-object", "memory-backend-ram,id=m1,size=1G",
            "-numa", "node,nodeid=0,cpus=0-1,memdev=m0",
            "-numa", "node,nodeid=1,memdev=m1" + (",initiator=0" if self.hmat else ""),
            *[word for table in self.hmat for word in ("-numa", table)],
            "-object",
            f"memory-backend-file,id=n0,share=on,mem-path={self.nvdimm},size={NVDIMM_BYTES}",
            "-device", "nvdimm,id=nvdimm0,memdev=n0,label-size=2M",
            "-virtfs", f"local,path=/,mount_tag=host,{plan9},readonly=on",
            "-virtfs", f"local,path={self.share},mount_tag=share,{plan9}",
            "-device", "virtio-serial-pci",
            "-chardev", "socket,id=control,path=control,server=on,wait=off",
            "-device", "virtserialport,chardev=control,name=nearfar.control",
            "-kernel", str(image), "-initrd", str(archive), "-append", options,
            "-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot",
        ]  # fmt: skip

    def _connect(self, deadline: float) -> None:
        # A path of a socket may have 107 bytes, and a test's folder is longer: by its folder's
        # descriptor it is short.
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            while True:
                with contextlib.suppress(OSError):
                    self._port.connect(f"/proc/self/fd/{descriptor}/control")
                    return
                self._check_alive(deadline, "did not open its control port")
                time.sleep(0.05)
        finally:
            os.close(descriptor)

    def _line(self, deadline: float, what: str) -> str:
        while b"\n" not in self._unread:
            self._port.settimeout(max(0.1, min(1.0, deadline - time.monotonic())))
            with contextlib.suppress(TimeoutError):
                received = self._port.recv(1 << 16)
                self._unread += received
                if received:
                    continue
            self._check_alive(deadline, what)
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _check_alive(self, deadline: float, what: str) -> None:
        if self._process.poll() is None and time.monotonic() < deadline:
            return
        with contextlib.suppress(OSError):
            self._console.flush()
        reported = (self.folder / "console").read_text(errors="replace")[-2000:]
        raise MachineError(f"the virtual machine {what}; its console ends:\n{reported}")
