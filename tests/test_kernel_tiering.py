"""The kernel's own placement: what is set for a run, what is set again after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.errors import MachineError
from nearfar.place.kernel_tiering import kernel_tiering

BALANCING = "proc/sys/kernel/numa_balancing"
DEMOTION = "sys/kernel/mm/numa/demotion_enabled"


def machine(root: Path, nodes: str = "0-1") -> Path:
    """A machine's settings; ``nodes`` with memory."""
    contents = {
        BALANCING: "1\n",
        DEMOTION: "false\n",
        "sys/devices/system/node/has_memory": f"{nodes}\n",
    }
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def settings(root: Path) -> tuple[str, str]:
    """The settings that are on."""
    return (root / BALANCING).read_text().strip(), (root / DEMOTION).read_text().strip()


def test_settings_hold_for_a_run_and_are_restored(tmp_path: Path) -> None:
    root = machine(tmp_path)
    with kernel_tiering(root):
        assert settings(root) == ("2", "true")
    assert settings(root) == ("1", "false")


def test_settings_are_restored_after_an_interrupt(tmp_path: Path) -> None:
    root = machine(tmp_path)
    with pytest.raises(KeyboardInterrupt), kernel_tiering(root):
        raise KeyboardInterrupt
    assert settings(root) == ("1", "false")


def test_one_memory_node_has_nothing_to_move(tmp_path: Path) -> None:
    root = machine(tmp_path, nodes="0")
    with pytest.raises(MachineError, match="memory on node 0 only"), kernel_tiering(root):
        pass
    assert settings(root) == ("1", "false")


def test_a_kernel_without_balancing_is_refused_and_nothing_is_set(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / BALANCING).unlink()
    with pytest.raises(MachineError, match=BALANCING) as refused, kernel_tiering(root):
        pass
    assert "Linux 5.18" in refused.value.next_step
    assert (root / DEMOTION).read_text() == "false\n"


def test_a_machine_that_cannot_is_refused_before_the_first_run(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    nodes = Path("/sys/devices/system/node/has_memory").read_text().strip()
    if not nodes.isdigit():
        pytest.skip("this machine has two memory nodes; its settings are left alone")
    ran = tmp_path / "ran"
    done = run_nearfar("run", "--compare", "all-near,kernel", "--", "touch", str(ran))
    assert done.code == 3
    assert f"memory on node {nodes} only" in done.stderr
    assert not ran.exists()
