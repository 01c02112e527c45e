//! Conversions between the types of this workspace and the values in the databases, checked in both directions.

use crate::StoreError;
use sha2::{Digest, Sha256};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Postgres, Sqlite, Type};
use std::fmt::Display;
use vocab::{ClusterName, GpuModel, HorizonHours, HourStart, MilliGpus, PoolId, UnixSeconds};

/// Type numbers that every Postgres has.
const TIMESTAMPTZ: Oid = Oid(1184);
const TIMESTAMPTZ_ARRAY: Oid = Oid(1185);
/// Postgres counts timestamps from 2000-01-01T00:00:00Z.
const POSTGRES_EPOCH_UNIX_S: i64 = 946_684_800;
/// The years 1 to 9999: both databases can hold them, and RFC 3339 can write them.
const STAMPS_UNIX_S: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// An instant: `timestamptz` in Postgres, seconds since 1970 in SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(pub UnixSeconds);

impl From<HourStart> for Stamp {
    fn from(hour: HourStart) -> Self {
        Self(hour.instant())
    }
}

impl Stamp {
    pub fn hour(self) -> Result<HourStart, StoreError> {
        valid("hour", HourStart::from_unix_s(self.0.get()))
    }

    fn checked(self) -> Result<i64, BoxDynError> {
        let unix_s = self.0.get();
        STAMPS_UNIX_S.contains(&unix_s).then_some(unix_s).ok_or_else(|| format!("{unix_s} s since 1970").into())
    }
}

/// Microseconds since the epoch of Postgres, as COPY and binary parameters hold an hour.
pub(crate) const fn postgres_micros(unix_s: i64) -> i64 {
    (unix_s - POSTGRES_EPOCH_UNIX_S) * 1_000_000
}

impl Type<Postgres> for Stamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ)
    }
}

impl PgHasArrayType for Stamp {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ_ARRAY)
    }
}

impl Encode<'_, Postgres> for Stamp {
    fn encode_by_ref(&self, buf: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode_by_ref(&postgres_micros(self.checked()?), buf)
    }
}

impl Decode<'_, Postgres> for Stamp {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let unix_s = <i64 as Decode<Postgres>>::decode(value)?.div_euclid(1_000_000).checked_add(POSTGRES_EPOCH_UNIX_S);
        Ok(Self(UnixSeconds::new(unix_s.ok_or("an infinite timestamp")?)))
    }
}

impl Type<Sqlite> for Stamp {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(info: &SqliteTypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(info)
    }
}

impl Encode<'_, Sqlite> for Stamp {
    fn encode_by_ref(&self, buf: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Sqlite>::encode_by_ref(&self.checked()?, buf)
    }
}

impl<'r> Decode<'r, Sqlite> for Stamp {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(UnixSeconds::new(<i64 as Decode<Sqlite>>::decode(value)?)))
    }
}

/// The checksum that is stored beside bytes, and verified when they are read.
pub(crate) fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Rows that retention deletes in one transaction: it occupies the one writer of SQLite for some ten milliseconds.
pub(crate) const BATCH: i64 = 5_000;

/// Maps a stored value that this program would not have written to [`StoreError::Corrupt`].
pub(crate) fn valid<T, E: Display>(what: &'static str, read: Result<T, E>) -> Result<T, StoreError> {
    read.map_err(|error| StoreError::corrupt(what, &error))
}

/// First and last hour of rows; `None` without rows.
pub(crate) type Span = Option<(HourStart, HourStart)>;

pub(crate) fn span((first, last): (Option<Stamp>, Option<Stamp>)) -> Result<Span, StoreError> {
    first.zip(last).map(|(first, last)| Ok((first.hour()?, last.hour()?))).transpose()
}

/// A stored whole number, in the type from which it was written.
pub(crate) fn whole<T: TryFrom<i64, Error: Display>>(what: &'static str, read: i64) -> Result<T, StoreError> {
    valid(what, T::try_from(read))
}

/// A whole number for the databases, which have no unsigned type.
pub(crate) fn signed(what: &'static str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange { what, value: value.to_string() })
}

/// Thousandths of GPUs. Exact: an amount is below 2⁵³.
pub(crate) const fn milli(amount: MilliGpus) -> i64 {
    amount.milli() as i64
}

pub(crate) fn amount(what: &'static str, read: i64) -> Result<MilliGpus, StoreError> {
    valid(what, MilliGpus::from_milli(whole(what, read)?))
}

pub(crate) fn horizon(what: &'static str, read: i64) -> Result<HorizonHours, StoreError> {
    valid(what, HorizonHours::new(whole(what, read)?))
}

pub(crate) fn pool(cluster: &str, gpu_model: &str) -> Result<PoolId, StoreError> {
    let cluster = valid("cluster", ClusterName::parse(cluster))?;
    Ok(PoolId { cluster, gpu_model: valid("GPU model", GpuModel::parse(gpu_model))? })
}

/// Converts rows into the type that callers see; fails at the first damaged one.
pub(crate) fn all<T, R: TryInto<T, Error = StoreError>>(rows: Vec<R>) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(TryInto::try_into).collect()
}
