"""An exploration of crashes in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from nearfar.verify.findings import CRASHES, FAILURES, CrashCount, Exploration, Finding

#: Note on a program that was started on each image and succeeded each time.
_UNVERIFIED = (
    "; a program that does not verify its data passes: `nearfar crash lint` lists stores that are "
    "never flushed"
)


def exploration(result: Exploration) -> Text:
    """Return counts, then each finding with its cause and the command that repeats it."""
    covered = (
        "every image was explored"
        if result.states_left == 0
        else f"at most {count_text(result.states_left)} images are left"
    )
    in_recovery = (
        f"{result.recovery_states:,} of them crashes during recovery"
        if result.reopening is None
        else "none of crashes during recovery (they require --checker)"
    )
    head = (
        f"{_counted(result.states, 'image')} at {_counted(result.points, 'failure point')}, "
        f"{in_recovery}; {covered}"
    )
    if result.confirmed:
        head += f"; {result.confirmed:,} were opened by libpmemobj as well"
    if result.interleavings:
        head += (
            f"; {result.interleavings_tried:,} of {result.interleavings:,} interleavings of threads"
        )
    return verbatim(
        head,
        *(_crash(count) for count in result.crashes),
        _verdict(result),
        *(_finding(i, f, bool(result.crashes)) for i, f in enumerate(result.findings, 1)),
    )


def _verdict(result: Exploration) -> str:
    """Return one sentence, with the reason if the verdict is not final."""
    if result.uncertain() and result.unseen_flushes:
        return (
            f"inconclusive: {_violations(result.violations)}, of a program with flushes that were "
            "not seen"
        )
    if result.uncertain():
        return (
            f"inconclusive: {_violations(result.violations)}, by stores whose order is not "
            "known, as another thread stored to their page; --recorder instrumented knows it"
        )
    if result.violations:
        ended = (
            "; the exploration ended at this number, so that other stores can be wrong, too: "
            "`nearfar crash lint` lists all that are never flushed"
            if result.cut_off
            else ""
        )
        return f"{_violations(result.violations)}{ended}"
    if result.verdict == "clean":
        all_tried = f": all stores ({result.stores:,}) were tried in both orders"
        found = "no violation" + ("" if result.states_left == 0 else all_tried)
        return found if result.reopening is None else found + _UNVERIFIED
    return _inconclusive(result)


def _inconclusive(result: Exploration) -> str:
    """Return why no violation is not a clean result."""
    tried = (
        f"{result.stores_tried:,} of {result.stores:,} stores, at {result.places_tried:,} of "
        f"{result.places:,} places in the code, were tried in both orders"
    )
    if result.interrupted:
        return f"inconclusive: interrupted; no violation so far, {tried}"
    if result.program_failed:
        return "inconclusive: no violation, but the program failed"
    if result.recording_cut_short:
        return "inconclusive: no violation, but the recording is incomplete"
    if result.only_inspected():
        return (
            "inconclusive: no violation, but only the structure of the pool was checked; "
            "--checker checks its data"
        )
    if result.doubtful:
        return (
            "inconclusive: no violation, but of some images the program said something else, with "
            "an expected code; give each failure a code of its own, or --checker"
        )
    if result.stores == 0:
        return (
            "inconclusive: no violation so far; libraries made all stores, so that how many were "
            "tried is not known. Give a larger --budget"
        )
    if result.interleavings_tried < result.interleavings:
        return "inconclusive: no violation so far; --interleave allows more interleavings"
    return f"inconclusive: no violation so far; only {tried}. Give a larger --budget"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _violations(count: int) -> str:
    return _counted(count, "violation")


def count_text(images: float) -> str:
    """Format a number of images, which may have hundreds of digits."""
    return f"{images:,.0f}" if images < 1e9 else f"{images:.1e}"


def replayed(result: Exploration) -> Text:
    """Return the result of one image."""
    if not result.findings:
        return verbatim("the image passes now")
    finding = result.findings[0]
    why = FAILURES.get(finding.failure, finding.failure)
    return verbatim(f"the image fails: {why}: {finding.what}")


def verbatim(*lines: str) -> Text:
    """Return text verbatim: a checker's message may contain markup, and paths must not be broken.

    Sources below the current directory are shown relative to it.
    """
    text = "\n".join(lines).replace(f"{Path.cwd()}/", "")
    return Text(text, no_wrap=True, overflow="ignore")


def _crash(count: CrashCount) -> str:
    left = f", at most {count_text(count.states_left)} left" if count.states_left else ""
    return (
        f"  {CRASHES[count.caches_lost]}: {_counted(count.states, 'image')}{left}, "
        f"{_violations(count.violations)}"
    )


def _finding(number: int, finding: Finding, hosts: bool) -> str:
    lines = [
        "",
        f"{number}. {FAILURES.get(finding.failure, finding.failure)}: {finding.what}",
        f"   {finding.sentence()}" if finding.store else "   cause: no store that was seen",
        f"   crash {finding.moment()}, {_counted(finding.acknowledged, 'operation')} acknowledged; "
        f"{_counted(finding.violations, 'image')}, "
        f"the first is image {finding.found_at_image:,}",
    ]
    calls = [call for call in finding.store_calls if call != finding.store_caller]
    if calls:
        lines.insert(3, f"   called from {', '.join(calls)}")
    if hosts:
        lines.append(f"   {CRASHES[finding.caches_lost]}")
    if finding.held:
        lines.append(f"   other threads went on between the store of {finding.held} and its flush")
    for line in finding.lines:
        state = "durable" if line.durable else "not durable"
        lines.append(
            f"   line at {line.address:#x} {state}: {line.place() or 'a store that was not seen'}"
        )
    if finding.replay:
        lines.append(f"   see it again: {finding.replay}")
    return "\n".join(lines)
