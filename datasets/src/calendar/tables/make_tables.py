#!/usr/bin/env python3
"""Makes the tables of days off beside this file from python-holidays (MIT, see README.md).

To renew them, for a new year or a new notice:

    python3 -m venv venv && venv/bin/pip install holidays==0.109
    venv/bin/python make_tables.py

then move the years below, renew facts.csv with record_facts.py, and run the tests of datasets::calendar.
"""

import csv
import pathlib
import warnings

import holidays

# Code of the calendar -> years, what python-holidays is asked for. China: only years that the State Council has
# announced, each in the autumn before, since make-up days are not computable; from 2006 on both sources agree on every
# day. The others follow laws of which the years until 2030 are known today.
TABLES = {
    "CN": (range(2006, 2027), {}),
    "US": (range(2010, 2031), {}),
    "DE": (range(2010, 2031), {}),
    "GB": (range(2010, 2031), {"subdiv": "ENG"}),
    "JP": (range(2010, 2031), {}),
    "IN": (range(2010, 2031), {}),
}


def rows(code, years, options):
    days = holidays.country_holidays(code, years=years, language="en_US", **options)
    # Looking up a day adds its year: only what was asked for.
    listed = sorted((day, name) for day, name in days.items() if day.year in years)
    for day, name in listed:
        yield day.isoformat(), "off", name
    for day in sorted(set(days.weekend_workdays)):
        if day.year in years:
            yield day.isoformat(), "work", "Make-up working day"


def main():
    warnings.simplefilter("ignore")
    here = pathlib.Path(__file__).parent
    for code, (years, options) in TABLES.items():
        with open(here / f"{code}.csv", "w", encoding="utf-8", newline="") as file:
            file.write(f"# years: {years[0]}-{years[-1]}\n")
            file.write(f"# Made by make_tables.py from python-holidays {holidays.__version__}.\n")
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["date", "kind", "name"])
            table.writerows(sorted(rows(code, years, options)))


if __name__ == "__main__":
    main()
