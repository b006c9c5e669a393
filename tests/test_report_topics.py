"""Topics of the page: each section is in one, and the contents bar leads to them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import factories
from nearfar.records.run import Run, Sections
from nearfar.report.html import sections
from nearfar.report.html.glance import cards
from nearfar.report.html.page import render
from nearfar.report.html.section import Section
from nearfar.report.html.topics import TOPICS, topics
from pages import Page


def _opened(page: str) -> list[str]:
    found = re.findall(r'class="topic"( open)?>.*?id="topic-([\w-]+)"', page, re.DOTALL)
    return [slug for opened, slug in found if opened]


def test_every_section_is_in_one_topic() -> None:
    slugs = {
        slug
        for file in Path(sections.__path__[0]).glob("[!_]*.py")
        for slug in re.findall(r'\bSection\(\s*"([a-z_]+)"', file.read_text())
    }
    listed = [slug for topic in TOPICS.values() for slug in topic]
    assert sorted(listed) == sorted(slugs)


def test_a_section_of_no_topic_is_still_on_the_page() -> None:
    new = Section("new", "New", "A new finding.")
    found = topics(factories.study(), [new])
    assert [(topic.slug, list(topic.sections), topic.opened) for topic in found] == [
        ("topic-more", [new], True)
    ]


def test_contents_bar_links_every_topic() -> None:
    page = render(factories.study())
    bar = page[page.index("<nav") : page.index("</nav>")]
    links = re.findall(r'href="#([\w-]+)"', bar)
    assert links == [each for each in Page(page).ids if each.startswith("topic-")]
    assert links[0] == "topic-machine"


@pytest.mark.parametrize(
    ("run", "opened"),
    [
        (factories.study(), ["machine"]),
        (factories.advised(), ["your-program"]),
        (factories.together(), ["near-and-far-together"]),
    ],
)
def test_the_subject_of_a_page_is_open(run: Run, opened: list[str]) -> None:
    assert [slug for slug in _opened(render(run)) if slug != "machine" or run.verb == "study"][
        -1:
    ] == opened


def test_a_closed_topic_says_what_was_found() -> None:
    page = render(factories.study())
    gist = page[page.index("<h2>Latency</h2>") : page.index('id="topic-latency"')]
    assert "A load from 768 MiB, which misses all caches, takes 91.5 ns" in gist


def test_cards_name_sections_of_the_record_and_of_the_page() -> None:
    listed = {slug for slugs in TOPICS.values() for slug in slugs}
    named = {
        card.section for run in (factories.study(), factories.advised()) for card in cards(run)
    }
    assert named
    assert named <= listed & Sections.model_fields.keys()
