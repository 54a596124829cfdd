"""The history of a metric: every run is a dot with its interval, a name and a link, in the order of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import nan

import pytest

from karat.report.html.history import HistoryPoint, history, value_axis
from karat.report.html.markup import write

START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def point(day=0, value=0.8, *, name="main", low=0.7, high=0.9, commit="", href=None, hours=0):
    time = START + timedelta(days=day, hours=hours)
    line = name.rpartition("/")[2]
    return HistoryPoint(name, line, time, value, low, high, commit, href or f"/run/{day}-{hours}")


def drawn(points, metric="recall@5"):
    return write(history(metric, points, "h"))


def links(html):
    return re.findall(r'<a href="([^"]+)" aria-label="([^"]*)"', html)


def test_each_dot_links_to_its_run_and_has_a_name_with_value_time_and_commit():
    html = drawn([point(1, 0.85, commit="abc1234"), point(0, 0.8, name="nightly/first")])
    assert links(html) == [
        ("/run/0-0", "nightly/first, 0.800 [0.70 – 0.90], 2 Mar 2026, 09:30"),
        ("/run/1-0", "main, 0.850 [0.70 – 0.90], 3 Mar 2026, 09:30 · commit abc1234"),
    ]
    assert "recall@5 of 2 runs in the order of time: 0.800 on 2 Mar" in html


def test_the_same_values_are_shown_near_the_pointer():
    html = drawn([point(0), point(1, 0.85, commit="abc1234")])
    stops = re.findall(r'<rect class="stop"[^>]*><title>([^<]*)</title>', html)
    assert stops[1] == "main\n0.850 [0.70 – 0.90]\n3 Mar 2026, 09:30 · commit abc1234"


def test_a_group_of_links_is_no_picture():
    html = drawn([point(0), point(1)])
    assert 'role="group"' in html
    assert 'role="img"' not in html


def test_runs_of_the_same_name_are_connected_also_from_several_folders():
    html = drawn([point(0, name="mon/main"), point(1, name="tue/main"), point(2, name="other")])
    (line,) = re.findall(r'<polyline[^>]*points="([^"]*)"', html)
    assert len(line.split()) == 2
    assert "runs of the same name are connected" in html


def test_two_lines_have_their_names_and_differ_in_more_than_colour():
    html = drawn([point(i, 0.7 + 0.1 * (i % 2), name=["main", "branch"][i % 2]) for i in range(4)])
    assert len(re.findall("<polyline", html)) == 2
    assert "dash-1" in html
    assert ">main</text>" in html
    assert ">branch</text>" in html


def test_one_run_has_no_history():
    assert history("rr", [point(0)], "h") is None
    assert history("rr", [point(0), point(1, nan)], "h") is None
    assert history("rr", [], "h") is None


def test_a_run_without_an_interval_has_a_dot_alone():
    html = drawn([point(0), point(1, low=nan, high=nan)])
    assert len(re.findall("<circle", html)) == 2
    assert len(re.findall('<line class="[^"]*interval', html)) == 1
    assert "where there are enough queries" in html
    assert "nan" not in html.lower()


def test_a_part_of_the_scale_is_said():
    assert "the scale shows 0.7 to 0.9" in drawn([point(0), point(1)])
    assert "the scale" not in drawn([point(0, low=0.1), point(1)])
    large = [point(day, 11_000.0, low=10_500.0, high=11_200.0) for day in (0, 1)]
    assert "the scale shows 10,500 to 11,500" in drawn(large)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([(0.8, 0.7, 0.9)], (0.7, 0.9)),
        ([(0.5, 0.1, 0.9)], (0.0, 1.0)),
        ([(1.0, 1.0, 1.0)], (0.99, 1.0)),
        ([(0.0, 0.0, 0.0)], (0.0, 0.01)),
        ([(0.9312, nan, nan), (0.9341, nan, nan)], (0.93, 0.94)),
        ([(0.57, 0.43, 0.93)], (0.0, 1.0)),  # more than half of the scale: all of it
        ([(131.7, 92.1, 187.0), (98.3, 60.0, 152.5)], (50, 200)),  # a custom metric
        ([(0.5, 0.4, 1.2)], (0.0, 1.5)),
        ([(-3.0, -4.0, -1.0)], (-4, -1)),
        ([(1.0000000001, nan, nan)], (0.99, 1.0)),
    ],
)
def test_the_scale_has_every_value_and_round_ends(values, ends):
    axis = value_axis([point(0, value, low=low, high=high) for value, low, high in values])
    assert (axis.low, axis.high) == pytest.approx(ends)
    assert axis.ticks[0] == axis.low
    assert axis.ticks[-1] == axis.high


def test_dates_are_below_the_first_run_of_a_day_and_times_if_it_is_one_day():
    days = drawn([point(0), point(0, hours=1), point(1)])
    assert re.findall(r">(\d+ \w+)</text>", days) == ["2 Mar", "3 Mar"]
    hours = drawn([point(0), point(0, hours=2)])
    assert ">09:30</text>" in hours
    assert ">11:30</text>" in hours
    years = drawn([point(0), point(400)])
    assert ">2 Mar 2026</text>" in years
    assert ">6 Apr 2027</text>" in years


def test_of_very_many_runs_the_latest_are_drawn_and_the_tab_key_passes_them():
    html = drawn([point(i) for i in range(300)])
    assert len(links(html)) == 200
    assert "the latest 200 of 300 runs" in html
    assert html.count('tabindex="-1"') == 200
    assert 'tabindex="-1"' not in drawn([point(i) for i in range(10)])


def test_a_hostile_name_stays_text():
    html = drawn([point(0, name='"><img src=x onerror=1>', commit="<b>"), point(1, name="\u202eevil\x00")])
    assert "<img" not in html
    assert "<b>" not in html
    assert "\u202e" not in html
