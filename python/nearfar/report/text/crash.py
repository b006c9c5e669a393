"""An exploration of crashes in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from nearfar.verify.findings import FAILURES, Exploration, Finding


def exploration(result: Exploration) -> Text:
    """Counts, then each finding with its cause and how to see it again."""
    covered = (
        "every image was explored" if result.states_left == 0
        else f"at most {count_text(result.states_left)} images are left"
    )  # fmt: skip
    head = (
        f"{result.states:,} images at {result.points:,} failure points, "
        f"{result.recovery_states:,} of them crashes during recovery; {covered}"
    )
    if result.confirmed:
        head += f"; {result.confirmed:,} were opened by libpmemobj as well"
    verdict = f"{result.violations:,} violations" if result.violations else "no violation"
    return _plain(head, verdict, *(_finding(i, f) for i, f in enumerate(result.findings, 1)))


def count_text(images: float) -> str:
    """A number of images, which may have hundreds of digits."""
    return f"{images:,.0f}" if images < 1e9 else f"{images:.1e}"


def replayed(result: Exploration) -> Text:
    """What one image did."""
    if not result.findings:
        return _plain("the image is good now")
    finding = result.findings[0]
    why = FAILURES.get(finding.failure, finding.failure)
    return _plain(f"the image fails: {why}: {finding.what}")


def _plain(*lines: str) -> Text:
    """Words as they are: a checker says what it likes, and paths are not to be broken.

    Sources below the current directory are named from there.
    """
    told = "\n".join(lines).replace(f"{Path.cwd()}/", "")
    return Text(told, no_wrap=True, overflow="ignore")


def _finding(number: int, finding: Finding) -> str:
    when = "during recovery, " if finding.during_recovery else ""
    lines = [
        "",
        f"{number}. {FAILURES.get(finding.failure, finding.failure)}: {finding.what}",
        f"   {finding.sentence()}" if finding.store else "   no store can be blamed",
        f"   crash {when}before event {finding.event:,}, "
        f"{finding.acknowledged:,} operations acknowledged; {finding.violations:,} images",
    ]
    for line in finding.lines:
        state = "durable" if line.durable else "not durable"
        lines.append(f"   line at {line.address:#x} {state}: {line.store}")
    if finding.replay:
        lines.append(f"   see it again: {finding.replay}")
    return "\n".join(lines)
