"""Made-up advice on a program, with as many sites as a test asks for."""

from __future__ import annotations

from typing import Any

from nearfar.records.advice import AdviceResult, BudgetPoint, FarAdvice, PolicyAdvice, SiteAdvice
from nearfar.records.figures import modelled
from nearfar.units import MIB

PROGRAM = ["./goprog", "--its-own-flag"]
_NOTE = "synthetic"
_STEPS = 12


def _figures(**values: float) -> dict[str, Any]:
    reported = {key: (value, value * 0.97, value * 1.03) for key, value in values.items()}
    made = modelled(_NOTE, [], **reported).model_dump(exclude_none=True)
    return {key: made[key] for key in (*values, "intervals", "provenance")}


def site(number: int) -> SiteAdvice:
    return SiteAdvice(
        site=number,
        kind="heap",
        at=f"source_{number % 97}.cpp:{number}",
        chain=[f"program+{number:#x}", "libc.so.6+0x2724a"],
        size_bytes=4096 + number,
        allocated_bytes=8192 + number,
        allocations=1 + number,
        life_share=0.5,
        reads=number * 3,
        writes=number,
        dependent_share=0.5,
        stall_share=0.0,
        verdict="near" if number < 3 else "far",
        **_figures(far_time_s=0.25 / (number + 1)),
    )


def far(name: str, slowest: float, sites: int) -> FarAdvice:
    curve = [
        BudgetPoint(
            near_budget_bytes=step * 4 * MIB,
            near_bytes=min(step // 3 * 12, 36) * MIB,
            exact=True,
            **_figures(slowdown=slowest - (slowest - 1) * min(step // 3, 3) / 3),
        )
        for step in range(_STEPS + 1)
    ]
    times = {"all_far": slowest, "movable_far": slowest * 0.98, "plan": 1 + (slowest - 1) / 9}
    return FarAdvice(
        far=name,
        near_bytes=36 * MIB,
        knee_bytes=36 * MIB,
        curve=curve,
        within=[],
        far_writes=10**6,
        policies=[
            PolicyAdvice(
                policy="first-touch",
                near_bytes=40 * MIB,
                moved_pages=0,
                near_share=0.6,
                far_writes=10**5,
                **_figures(slowdown=slowest * 0.9, time_s=slowest * 0.9 * 4),
            )
        ],
        sites=[site(number) for number in range(sites)],
        **_figures(
            **{f"slowdown_{key}": value for key, value in times.items()},
            **{f"time_{key}_s": value * 4 for key, value in times.items()},
        ),
    )


def advice(sites: int = 40) -> AdviceResult:
    """A program on two far memories."""
    fars = [far("cxl-asic", 1.8, sites), far("optane-100", 2.6, sites)]
    return AdviceResult.model_validate(
        {
            **fars[0].model_dump(),
            "limits": ["the kernel's own accesses are not seen"],
            "warnings": ["goprog started 2 threads"],
            "program": PROGRAM,
            "host": "this",
            "near": "dram",
            "movable_bytes": 48 * MIB,
            "fixed_bytes": 2 * MIB,
            "time_near_s": 4.0,
            "traced_time_s": 60.0,
            "records": 10**6,
            "sampled_share": 1.0,
            "plan": "goprog.plan",
            "fars": [each.model_dump() for each in fars],
        }
    )
