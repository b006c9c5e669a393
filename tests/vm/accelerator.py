"""Accelerator of QEMU's virtual machines: KVM where that works, else software."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

#: QEMU 7.2 emulates some AVX instructions wrongly, and faults on masked gathers: leave them out.
_EMULATED = ("-accel", "tcg,thread=multi", "-cpu", "max,-avx,-avx2,-fma,-f16c,-vaes,-vpclmulqdq")
#: Without a register that KVM in a virtual machine may refuse to set (IA32_ARCH_CAPABILITIES).
_KVM = ("-accel", "kvm", "-cpu", "host,-arch-capabilities")
#: A kernel gets to its missing root file system in one or two seconds. Nested in another virtual
#: machine, KVM may start, and be a thousand times slower than emulation.
_LIMIT_S = 10.0


def processor_options(image: Path) -> tuple[str, ...]:
    """QEMU's options, for machines that boot the kernel ``image``."""
    return _KVM if kvm_works(image) else _EMULATED


@functools.cache
def kvm_works(image: Path) -> bool:
    """Whether a kernel boots under KVM: without a file system, it panics, which ends QEMU."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = [
        "qemu-system-x86_64", *_KVM, "-machine", "q35", "-m", "512M", "-kernel", str(image),
        "-append", "panic=-1", "-nodefaults", "-display", "none", "-no-reboot",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
