"""A record in at most 30 lines: how fast, how far, how sure, what next.

Only a terminal cuts long lines. A file keeps them whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.noise import Reliability
from nearfar.records.run import REST_OF_HOST, Run
from nearfar.report.html.answers import on_far_memory, what_next
from nearfar.report.html.glance import TOO_FEW, Card, cards
from nearfar.report.html.verdict import UNRELIABLE, reliance
from nearfar.report.terminal.layout import OneLine, columns
from nearfar.report.terminal.record import TONE_STYLES, head, noise
from nearfar.report.wording import count, sentence

#: Maximum numbers of lines. The report and ``nearfar show`` have all of them.
_MAX_REASONS = 3
_MAX_SENTENCES = 4
_MAX_SKIPPED = 2


def summary(run: Run, folder: Path) -> RenderableType:
    """Return the headline figures, the verdict, what to do next, and the command for the rest."""
    parts: list[RenderableType] = [head(run), Text("")]
    figures = _figures(run)
    if figures is not None:
        parts += [figures, Text("")]
    said = [_one_line(f"· {text}") for text in on_far_memory(run)[:_MAX_SENTENCES]]
    if said:
        parts += [*said, Text("")]
    parts += [_sure(run), *_skipped(run), Text("")]
    steps = [*what_next(run), (f"nearfar show {folder}", "all tables")]
    width = max(len(command) for command, _ in steps)
    parts += [Text(f"{command:<{width}}  {why}") for command, why in steps]
    return Group(*parts)


def _figures(run: Run) -> RenderableType | None:
    rows = []
    for card in cards(run):
        origin = card.origin.value if card.origin and card.origin.value != "measured" else ""
        value = " ".join(filter(None, (card.value, f"({card.interval})", origin)))
        rows.append([card.label, value, _verdict(run, card), card.context])
    return columns(["", "Value", "Verdict", "Of"], rows, 4) if rows else None


def _verdict(run: Run, card: Card) -> str:
    """Return the verdict of the section; a steady one is not enough for a figure of few repeats."""
    found = run.verdict_on(card.section)
    if found is None:
        return ""
    if found.verdict is Reliability.STEADY and card.interval.endswith(TOO_FEW):
        return "few repeats"
    return found.verdict.value


def _sure(run: Run) -> RenderableType:
    """Return the verdict by section, with few reasons."""
    record = run.noise
    if record is None or not record.noisy:
        return noise(run)
    if not record.judged:
        first = [_one_line(f"  · {reason}") for reason in record.reasons[:_MAX_REASONS]]
        return Group(Text(f"{UNRELIABLE}.", style="bold red"), *first)
    lines: list[RenderableType] = []
    reasons = 0
    for each in reliance(run):
        style = TONE_STYLES[each.tone]
        lines.append(Text(f"{each.title}: {', '.join(each.sections)}.", style=style))
        if each.verdict is not Reliability.STEADY:
            shown = each.reasons[: max(_MAX_REASONS - reasons, 1)]
            reasons += len(shown)
            lines += [_one_line(f"  · {reason}") for reason in shown]
    return Group(*lines)


def _skipped(run: Run) -> Iterator[RenderableType]:
    for skip in run.skipped:
        if skip.what == REST_OF_HOST:
            yield Text(f"{sentence(skip.section)}: {skip.why}.")
    whole = [skip for skip in run.skipped if skip.what == "the whole section"]
    for skip in whole[:_MAX_SKIPPED]:
        yield _one_line(f"Skipped {skip.section}: {skip.why}")
    if len(whole) > _MAX_SKIPPED:
        yield Text(f"Skipped {count(len(whole) - _MAX_SKIPPED, 'more section')}.")


def _one_line(text: str) -> OneLine:
    return OneLine(Text(text))
