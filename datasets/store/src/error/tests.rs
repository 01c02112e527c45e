//! Tests of the mapping of errors of the databases.

use super::*;

#[test]
fn a_full_disk_and_a_missing_right_to_write_have_their_own_remedies() {
    for (code, remedy) in [
        ("13", "free space on its disk"),
        ("4874", "free space on its disk, which has no room for the file that ends in -shm"),
        ("8", "give this user the right to write to the file and its folder"),
        ("1032", "give this user the right to write to the file and its folder"),
    ] {
        let fault = from_sqlite_code(code, "attempt to write").unwrap().to_string();
        let begin = format!("the database takes no more data: attempt to write ({code}); {remedy}");
        assert!(fault.starts_with(&begin), "{fault}");
    }
    let fault = from_sqlstate("25006", "read-only").unwrap().to_string();
    assert!(fault.contains("name the server that takes writes, or") && fault.contains("read_only to off"), "{fault}");
    let renamed = from_sqlite_code("1", "table journal has no column named seq").unwrap();
    assert!(matches!(renamed, StoreError::Schema { .. }), "{renamed}");
    let raised = from_sqlite_code("1811", "not on Sundays").unwrap();
    assert!(
        matches!(raised, StoreError::Denied { .. }) && raised.to_string().contains("a trigger or rule"),
        "{raised}"
    );
    let raised = from_sqlstate("P0001", "not on Sundays").unwrap();
    assert!(
        matches!(raised, StoreError::Denied { .. }) && raised.to_string().contains("a trigger or rule"),
        "{raised}"
    );
}

#[test]
fn a_missing_schema_and_a_server_without_connections_say_what_to_look_for() {
    let fault = from_sqlstate("3F000", "no schema has been selected to create in").unwrap().to_string();
    assert!(fault.ends_with("or correct search_path"), "{fault}");
    let moved = from_sqlstate("42P01", "relation \"tasks\" does not exist").unwrap();
    assert!(matches!(moved, StoreError::Schema { .. }) && moved.to_string().contains("search_path"), "{moved}");
    let none = StoreError::from(sqlx::Error::PoolTimedOut);
    assert!(none.is_retryable() && none.to_string().contains("max_connections"), "{none}");
}
