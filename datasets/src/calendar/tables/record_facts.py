#!/usr/bin/env python3
"""Records facts.csv: days that differ from the rule "Saturday and Sunday off", from sources other than the tables'.

    pip install chinesecalendar==1.11.0 pandas==3.1.1 workalendar==17.0.0 jpholiday==1.0.3
    python3 record_facts.py > facts.csv

A weekday that is off, or a Saturday or Sunday on which people work, is a row; holidays that fall on a weekend anyway are
not. Each calendar's facts hold for all days of the years in its comment.
"""

import datetime
import sys

import chinese_calendar
import jpholiday
from pandas.tseries.holiday import USFederalHolidayCalendar
from workalendar.europe import Germany, UnitedKingdom

# The lists of the Department of Personnel and Training for offices in Delhi (Annexure I of the memoranda of 16 June
# 2022, 3 July 2023 and for 2025), and 14 April, which a memorandum of its own adds each year.
INDIA = """
2023-01-26 2023-03-08 2023-03-30 2023-04-04 2023-04-07 2023-04-14 2023-04-22 2023-05-05 2023-06-29 2023-07-29
2023-08-15 2023-09-07 2023-09-28 2023-10-02 2023-10-24 2023-11-12 2023-11-27 2023-12-25
2024-01-26 2024-03-25 2024-03-29 2024-04-11 2024-04-14 2024-04-17 2024-04-21 2024-05-23 2024-06-17 2024-07-17
2024-08-15 2024-08-26 2024-09-16 2024-10-02 2024-10-12 2024-10-31 2024-11-15 2024-12-25
2025-01-26 2025-02-26 2025-03-14 2025-03-31 2025-04-10 2025-04-14 2025-04-18 2025-05-12 2025-06-07 2025-07-06
2025-08-15 2025-08-16 2025-09-05 2025-10-02 2025-10-20 2025-11-05 2025-12-25
"""
# workalendar 17.0.0 lacks the coronation; it is in the list of gov.uk.
CORONATION = datetime.date(2023, 5, 8)


def days(years):
    day = datetime.date(years[0], 1, 1)
    while day.year <= years[-1]:
        yield day
        day += datetime.timedelta(1)


def listed(calendar, years):
    return {day for year in [*years, years[-1] + 1] for day, _ in calendar.holidays(year)}


def facts(code, years, off):
    print(f"# {code} {years[0]}-{years[-1]}")
    for day in days(years):
        if off(day) != (day.weekday() >= 5):
            print(f"{code},{day},{'off' if off(day) else 'work'}")


def main():
    many = range(2010, 2031)
    states = {time.date() for time in USFederalHolidayCalendar().holidays("2009-12-01", "2031-01-31")}
    germany = listed(Germany(), many)
    kingdom = listed(UnitedKingdom(), many) | {CORONATION}
    india = {datetime.date.fromisoformat(word) for word in INDIA.split()}
    weekend = lambda day: day.weekday() >= 5
    print("calendar,date,kind")
    facts("CN", range(2006, 2027), chinese_calendar.is_holiday)
    facts("US", many, lambda day: weekend(day) or day in states)
    facts("DE", many, lambda day: weekend(day) or day in germany)
    facts("GB", many, lambda day: weekend(day) or day in kingdom)
    facts("JP", many, lambda day: weekend(day) or jpholiday.is_holiday(day))
    facts("IN", range(2023, 2026), lambda day: weekend(day) or day in india)


if __name__ == "__main__":
    sys.exit(main())
