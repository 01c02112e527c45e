//! The file that was opened, with its connections: what becomes of its write-ahead log where the file or the log is lost.

use super::SAVES_WITHIN;
use crate::StoreError;
use crate::file::DatabaseFile;
use crate::log::Loss;
use crate::proofs::PROVE;
use sqlx::sqlite::SqlitePool;
use std::mem;

/// The file that was opened, with its connections.
pub(crate) struct Opened {
    pub file: DatabaseFile,
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Opened {
    pub const fn new(file: DatabaseFile, writer: SqlitePool, readers: SqlitePool) -> Self {
        Self { file, writer, readers }
    }

    /// Checks that the file is the one that was opened, and its log as long as what was written to it.
    pub fn check(&self) -> Result<(), StoreError> {
        self.file.check()?;
        self.check_length()
    }

    /// As [`check`](Self::check), and checks the first bytes of the file.
    pub fn check_header(&self) -> Result<(), StoreError> {
        self.file.check_header()?;
        self.check_length()
    }

    /// Checks that the log is as long as what was written to it.
    pub fn check_length(&self) -> Result<(), StoreError> {
        if self.file.log().is_cut() { Err(self.abandon()) } else { Ok(()) }
    }

    /// Checks that no check has found the log lost, and that it is as long as what was written to it.
    pub fn check_commit(&self) -> Result<(), StoreError> {
        self.file.log().check_noted()?;
        self.check_length()
    }

    /// Where the log is not at its place any more: writes what it held to the file that was opened, and moves another one out of its
    /// place. The connections stay open until the process ends: one that was opened meanwhile has the other log.
    pub async fn lose_log(&self) -> StoreError {
        let log = self.file.log();
        self.keep_open();
        let is_replaced = log.is_replaced();
        // No commit follows what is saved now.
        let lost = log.lose(if is_replaced { Loss::Replaced } else { Loss::Away });
        match tokio::time::timeout(SAVES_WITHIN, self.save_log()).await {
            Ok(Ok(true)) if is_replaced => {
                // Beside another database it belongs to that one.
                let moved = if self.file.is_replaced() { None } else { log.move_other_aside() };
                log.lose(Loss::ReplacedSaved(moved))
            }
            Ok(Ok(true)) => log.lose(Loss::Saved),
            _ => lost,
        }
    }

    /// Writes what the log that was opened holds to the file that was opened. Returns whether all of it is there.
    async fn save_log(&self) -> Result<bool, sqlx::Error> {
        let mut connection = self.writer.acquire().await?;
        sqlx::query("PRAGMA wal_autocheckpoint = 0").execute(&mut *connection).await?;
        // Of a connection that was opened meanwhile this is in the other log, and the one that was opened lacks it.
        sqlx::query(PROVE).execute(&mut *connection).await?;
        if !self.file.log().is_whole() {
            return Ok(false);
        }
        let saving = sqlx::query_as::<_, (i64, i64, i64)>("PRAGMA wal_checkpoint(FULL)");
        let (is_busy, pages, saved) = saving.fetch_one(&mut *connection).await?;
        Ok(is_busy == 0 && pages == saved)
    }

    /// Where another file took the place of the one that was opened: writes what the log holds to the latter, and empties the log.
    /// SQLite would write it to the new file. Where that fails, the next start refuses the log. Where another log took the place of the
    /// open one: as [`lose_log`](Self::lose_log).
    pub async fn leave_log(&self) {
        if self.file.log().is_replaced() {
            // The last connection that closes would take the other one away.
            let fault = self.lose_log().await;
            if !self.file.is_replaced() {
                tracing::error!(%fault, "the write-ahead log was replaced");
            }
        } else if self.file.is_replaced() && self.file.log().is_in_place() && self.check_length().is_ok() {
            // It empties the log only if all of it is saved, by way of the open file.
            let leaving = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.writer);
            // The fault that is reported is that of the file.
            let _ = tokio::time::timeout(SAVES_WITHIN, leaving).await;
            self.file.log().forget_owner();
        }
    }

    /// Closes the connections, unless the last one would write zeros to the database, or to a file that has lost its beginning.
    pub async fn close(&self) {
        self.leave_log().await;
        if self.check_commit().is_err() {
            return;
        }
        if self.file.is_overwritten() {
            self.keep_open();
            return;
        }
        self.readers.close().await;
        self.writer.close().await;
        self.file.log().forget_owner();
    }

    fn abandon(&self) -> StoreError {
        if !self.file.log().was_cut() {
            self.keep_open();
        }
        self.file.log().lose(Loss::Cut)
    }

    /// Keeps the connections open until the process ends: the last one that is closed writes the log to the database, and zeros
    /// where the log was cut off.
    fn keep_open(&self) {
        mem::forget((self.writer.clone(), self.readers.clone()));
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A program that fails drops its connections.
        let _ = self.check_length();
    }
}

#[cfg(test)]
mod tests {
    use crate::file::beside;
    use crate::proofs::PROVE;
    use crate::sqlite::{BUSY_WITHIN, SqliteStore};
    use crate::{ProofStore, StoreError};
    use std::fs::{self, File};

    #[tokio::test]
    async fn a_log_that_is_cut_off_within_a_transaction_is_noticed_before_its_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headroom.db");
        let store = SqliteStore::connect(path.to_str().unwrap(), BUSY_WITHIN).await.unwrap();
        store.prove_write().await.unwrap();
        let before = fs::read(&path).unwrap();
        let mut transaction = store.begin_unproved().await.unwrap();
        sqlx::query(PROVE).execute(&mut *transaction).await.unwrap();
        File::options().write(true).open(beside(&path, "-wal")).unwrap().set_len(0).unwrap();
        let fault = transaction.commit().await.err();
        store.close_connections().await;
        assert!(fs::read(&path).unwrap() == before, "the file has changed");
        assert!(matches!(fault, Some(StoreError::Lost { .. })), "{fault:?}");
    }
}
