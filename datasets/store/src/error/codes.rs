//! The codes of the databases, by which their errors are known.

use super::StoreError;

/// Of a row that was refused by code in the database.
const NOT_OURS: &str = "; a trigger or rule that is not of this program refuses it: remove or correct that";

/// Codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
pub fn from_sqlstate(code: &str, message: &str) -> Option<StoreError> {
    let reason = format!("{message} ({code})");
    match (code, code.get(..2)?) {
        ("53100", _) => Some(StoreError::Full { reason: format!("{reason}; free space on its disk") }),
        // Postgres before 16 gives no code of its own to a new connection that finds no room for its list of tables.
        ("XX000", _) if message.starts_with("could not write init file") => {
            Some(StoreError::Full { reason: format!("{reason}; free space on its disk") })
        }
        // The server, or a replica, is read-only.
        ("25006", _) => {
            let reason = format!(
                "{reason}; name the server that takes writes, or, if it is this one, set default_transaction_read_only to off for its database and user"
            );
            Some(StoreError::Full { reason })
        }
        // Serialization failure, deadlock, lock not available, statement cancelled.
        ("40001" | "40P01" | "55P03" | "57014", _) => Some(StoreError::Busy { reason }),
        // 23514: a CHECK of the table; class 22: numbers, times and texts that the column cannot hold.
        ("23514", _) | (_, "22") => Some(StoreError::OutOfRange { what: "a value", value: reason }),
        // No such database; missing privilege; class 28: wrong user or password.
        ("3D000" | "42501", _) | (_, "28") => {
            let reason = format!("{reason}; check the user, the password, the name and the permissions");
            Some(StoreError::Denied { reason })
        }
        // 25P03 idle in transaction; classes: connection, resources, shutdown, I/O.
        ("25P03", _) | (_, "08" | "53" | "57" | "58") => Some(StoreError::Unavailable { reason }),
        // Raised by code that an operator added to the tables: they have no triggers, rules or functions of their own.
        (_, "09" | "27" | "38" | "39" | "44" | "P0") => Some(StoreError::Denied { reason: reason + NOT_OURS }),
        ("3F000", _) => {
            let reason = format!("{reason}; create the schema that search_path names, or correct search_path");
            Some(StoreError::Schema { reason })
        }
        // A table, a column, its type: a program begins only where all are there.
        ("42P01" | "42703" | "42804" | "42883", _) => {
            Some(StoreError::Schema { reason: tables_changed(&reason) + " (is it search_path?)" })
        }
        ("XX001" | "XX002", _) => Some(StoreError::Corrupt { what: "a table or index".to_owned(), reason }),
        _ => None,
    }
}

fn tables_changed(reason: &str) -> String {
    format!(
        "{reason}; its tables are not as they were when this program began: undo what was changed, or restart it once they are back"
    )
}

/// Codes: <https://www.sqlite.org/rescode.html>; the low byte of an extended code is the primary one.
pub fn from_sqlite_code(code: &str, message: &str) -> Option<StoreError> {
    let reason = format!("{message} ({code})");
    let code = code.parse::<u32>().ok()?;
    // 275: a CHECK of the table.
    match if code == 275 { 20 } else { code & 0xff } {
        1 if ["no such table", "no such column", "has no column named"].iter().any(|text| message.contains(text)) => {
            Some(StoreError::Schema { reason: tables_changed(&reason) })
        }
        // 1811: a trigger that raises; the tables have none of their own.
        19 if code == 1_811 => Some(StoreError::Denied { reason: reason + NOT_OURS }),
        // Too big; of another type than the column.
        18 | 20 => Some(StoreError::OutOfRange { what: "a value", value: reason }),
        5 | 6 => Some(StoreError::Busy { reason }),
        8 => {
            let reason = format!(
                "{reason}; give this user the right to write to the file and its folder, without which it cannot be read either"
            );
            Some(StoreError::Full { reason })
        }
        13 => Some(StoreError::Full { reason: format!("{reason}; free space on its disk") }),
        // The index of the log, which cannot be made, grown or read into memory.
        10 if matches!(code, 4_618 | 4_874 | 5_386) => {
            let reason = format!("{reason}; free space on its disk, which has no room for the file that ends in -shm");
            Some(StoreError::Full { reason })
        }
        10 => Some(StoreError::Unavailable { reason }),
        26 => Some(StoreError::Corrupt {
            what: "the database file".to_owned(),
            reason: format!("it is not an SQLite database: {reason}"),
        }),
        14 => {
            let reason = format!(
                "{reason}; is its folder there, may this user write to the file and to the folder, and is there an inode free \
                 for a file beside it (df -i)?"
            );
            Some(StoreError::Denied { reason })
        }
        11 => Some(StoreError::Corrupt { what: "the database file".to_owned(), reason }),
        3 | 23 => Some(StoreError::Denied { reason }),
        _ => None,
    }
}
