//! A file system of a few MiB, which a test fills and frees.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A tmpfs, unmounted when it goes out of scope.
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// `None`, with a line that says so, where this user may not mount one.
    ///
    /// # Panics
    /// There is no temporary folder.
    #[must_use]
    pub fn mount(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let size = format!("size={mib}m,mode=0755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        if mounted.is_ok_and(|ran| ran.status.success()) {
            return Some(Self { folder });
        }
        eprintln!("not run on a full file system: this user may not mount one");
        None
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a folder on it that belongs to the owner of another one.
    ///
    /// # Panics
    /// It cannot.
    #[must_use]
    pub fn folder_of_owner_of(&self, name: &str, other: &Path) -> std::path::PathBuf {
        let folder = self.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let owner = other.metadata().expect("the other folder");
        chown(&folder, Some(owner.uid()), Some(owner.gid())).expect("root gives folders away");
        folder
    }

    /// Leaves not one byte.
    ///
    /// # Panics
    /// It fails for another reason than a full disk.
    pub fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.filler()).expect("a file");
        for size in [1 << 20, 4_096, 1] {
            let zeros = vec![0; size];
            while filler.write_all(&zeros).is_ok() {}
        }
    }

    /// Gives back what was filled.
    ///
    /// # Panics
    /// It was not filled.
    pub fn free(&self) {
        std::fs::remove_file(self.filler()).expect("the filler is there");
    }

    fn filler(&self) -> std::path::PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a program that is just ending may still have a file open.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.folder.path().display());
        }
    }
}
