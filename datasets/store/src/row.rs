//! Rows of queries, by the names of their columns.

/// Declares the row of a query: a struct, and how it is read from a row of Postgres and of SQLite. The names of the fields are
/// those of the columns. `sqlx::FromRow` derives the same, but its macro compiles both drivers a second time for the machine
/// that builds: two minutes of processor time.
macro_rules! row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type,)* }

        row!(@read $name, sqlx::postgres::PgRow, $($field)*);
        row!(@read $name, sqlx::sqlite::SqliteRow, $($field)*);
    };
    (@read $name:ident, $row:ty, $($field:ident)*) => {
        impl sqlx::FromRow<'_, $row> for $name {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: sqlx::Row::try_get(row, stringify!($field))?,)* })
            }
        }
    };
}
