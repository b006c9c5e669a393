"""Topics of the page: groups of sections about one subject, opened and closed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.records.run import Run
from nearfar.report.html.section import Section


@dataclass(frozen=True)
class Topic:
    """Sections under one heading. ``slug`` is the target of its link in the table of contents."""

    slug: str
    title: str
    sections: Sequence[Section]
    opened: bool

    @property
    def heading(self) -> str:
        """The title of the topic; if it has one section only, the title of that section."""
        return self.sections[0].title if len(self.sections) == 1 else self.title


#: The topic of the sections that are not in TOPICS, such as new ones.
_MORE = "More"
#: Topics in the order of the page, each with the slugs of its sections in their order.
TOPICS: dict[str, tuple[str, ...]] = {
    "Your program": ("advice", "placement"),
    "Grid": ("sweep",),
    "Machine": ("machine", "matrix"),
    "Latency": ("latency", "blocks", "tails", "parallelism"),
    "Bandwidth": ("loaded", "bandwidth", "access", "stream"),
    "Near and far together": ("compete", "stencil", "pipeline"),
    "Persistence and files": ("persistence", "mapped"),
    "Data structures": ("map", "intset", "structures"),
    "Programs": ("malloc", "program", "experiment"),
    "Simulation": ("simulation", "load_curve"),
    _MORE: (),
    "What changed": ("changes",),
    "How sure": ("reliability", "skipped", "findings", "provenance"),
}
#: Verbs that measure the machine itself. Their pages start with the topic *Machine*.
MACHINE_VERBS = ("study", "probe")
_MACHINE, _BACKGROUND = "Machine", ("Machine", "How sure")


def topics(run: Run, sections: Sequence[Section]) -> list[Topic]:
    """Return the topics that have sections on this page.

    The first topic is open. If the page has only one topic other than *Machine* and *How sure*,
    this one is open, too.
    """
    by_slug = {section.slug: section for section in sections}
    named = {slug for slugs in TOPICS.values() for slug in slugs}
    filled = {
        title: [by_slug[slug] for slug in slugs if slug in by_slug]
        for title, slugs in _ordered(run).items()
    }
    filled[_MORE] = [section for section in sections if section.slug not in named]
    titles = [title for title, found in filled.items() if found]
    subjects = [title for title in titles if title not in _BACKGROUND]
    opened = {*titles[:1], *(subjects if len(subjects) == 1 else [])}
    return [Topic(_slug(title), title, filled[title], title in opened) for title in titles]


def _ordered(run: Run) -> dict[str, tuple[str, ...]]:
    """Return the topics in the order of this page; *Machine* is last unless it is the subject."""
    if run.verb in MACHINE_VERBS:
        return TOPICS
    rest = {title: slugs for title, slugs in TOPICS.items() if title != _MACHINE}
    return {**rest, _MACHINE: TOPICS[_MACHINE]}


def _slug(title: str) -> str:
    return f"topic-{title.lower().replace(' ', '-')}"
