//! Rows of queries, by the names of their columns.

/// Declares the row of a query: a struct whose fields are named like the columns, and its `FromRow` for Postgres and
/// SQLite. The derive macro of `sqlx::FromRow` does the same, but compiles both drivers a second time for the build
/// machine: two minutes of processor time.
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
