"""``damo``, the user-space tool of DAMON: hot and cold regions move while the program runs."""

from __future__ import annotations

from nearfar.records.advice import AdviceResult
from nearfar.report.other_tools.header import comment, header

#: Limit of what moves, so that the program does not wait for it.
_QUOTA = "--damos_quota_interval 1s --damos_quota_space 200MB"


def lines(result: AdviceResult) -> list[str]:
    """Both schemes, for one process."""
    return [
        *header(result),
        f"pid={result.pid}" if result.pid is not None else 'pid="$1"  # of the running program',
        *comment(
            "DAMON finds hot and cold regions by itself, and does not know a near budget: it moves "
            "far what was not accessed for 10 s, and near what is accessed in 5 % of its looks. "
            "Regions smaller than it can see stay where they are. This requires root, and a kernel "
            "whose DAMON has the actions migrate_hot and migrate_cold for virtual addresses."
        ),
        'damo start --ops vaddr --target_pid "$pid" \\',
        '  --damos_action migrate_cold "$far_node" --damos_access_rate 0% 0% \\',
        f"  --damos_age 10s max {_QUOTA} \\",
        '  --damos_action migrate_hot "$near_node" --damos_access_rate 5% max \\',
        f"  {_QUOTA}",
    ]
