//! The calendars that come with the program.

use super::DayTable;
use crate::read;
use std::sync::LazyLock;

/// Saturday and Sunday off, alone or with the holidays and make-up working days of a country.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    Weekdays,
    China,
    UnitedStates,
    Germany,
    UnitedKingdom,
    Japan,
    India,
}

impl BuiltIn {
    /// All built-in calendars.
    pub const ALL: [Self; 7] =
        [Self::Weekdays, Self::China, Self::UnitedStates, Self::Germany, Self::UnitedKingdom, Self::Japan, Self::India];

    /// The stored name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weekdays => "weekdays",
            Self::China => "CN",
            Self::UnitedStates => "US",
            Self::Germany => "DE",
            Self::UnitedKingdom => "GB",
            Self::Japan => "JP",
            Self::India => "IN",
        }
    }

    /// English name, for users who do not know the code.
    #[must_use]
    pub const fn country(self) -> &'static str {
        match self {
            Self::Weekdays => "weekends",
            Self::China => "China",
            Self::UnitedStates => "USA",
            Self::Germany => "Germany",
            Self::UnitedKingdom => "England",
            Self::Japan => "Japan",
            Self::India => "India",
        }
    }

    /// Reads a name, in capitals or not; `UK` is `GB`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("UK") { "GB" } else { name };
        Self::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// Days in the table, and days left out.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Weekdays => "Saturday and Sunday off",
            Self::China => {
                "public holidays with the make-up working days, as the State Council announces them each year"
            }
            Self::UnitedStates => "federal holidays with their observed days",
            Self::Germany => "holidays of all states, without those of single states",
            Self::UnitedKingdom => "bank holidays of England and Wales",
            Self::Japan => "national holidays; equinoxes of years not yet announced are computed",
            Self::India => {
                "gazetted holidays of the central government and 14 April; from 2027 on the dates of the Islamic \
                 calendar are estimates"
            }
        }
    }

    /// The named days; `None` where the weekday decides alone.
    #[must_use]
    pub fn table(self) -> Option<&'static DayTable> {
        static CHINA: LazyLock<DayTable> = LazyLock::new(|| embedded(include_str!("tables/CN.csv")));
        static UNITED_STATES: LazyLock<DayTable> = LazyLock::new(|| embedded(include_str!("tables/US.csv")));
        static GERMANY: LazyLock<DayTable> = LazyLock::new(|| embedded(include_str!("tables/DE.csv")));
        static UNITED_KINGDOM: LazyLock<DayTable> = LazyLock::new(|| embedded(include_str!("tables/GB.csv")));
        static JAPAN: LazyLock<DayTable> = LazyLock::new(|| embedded(include_str!("tables/JP.csv")));
        static INDIA: LazyLock<DayTable> = LazyLock::new(|| embedded(include_str!("tables/IN.csv")));
        match self {
            Self::Weekdays => None,
            Self::China => Some(&CHINA),
            Self::UnitedStates => Some(&UNITED_STATES),
            Self::Germany => Some(&GERMANY),
            Self::UnitedKingdom => Some(&UNITED_KINGDOM),
            Self::Japan => Some(&JAPAN),
            Self::India => Some(&INDIA),
        }
    }
}

fn embedded(csv: &str) -> DayTable {
    read::days_csv("the table".as_ref(), csv).expect("a test reads every table").table
}
